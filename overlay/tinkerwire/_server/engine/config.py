"""The base models that exist, and the settings of a LoRA adapter."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from tinkerwire._server.engine.errors import EngineError

__all__ = ["BASE_MODELS", "END_OF_TEXT", "VOCAB_SIZE", "LoraSettings", "ModelConfig", "model_config"]

END_OF_TEXT = 256
"""The one token that is no byte. Nothing is special about it: to end on it, pass it as a stop token."""

VOCAB_SIZE = 257
"""256 byte values and `END_OF_TEXT`."""


@attrs.frozen(kw_only=True)
class ModelConfig:
    """The shape of a base model and the seed of its weights.

    Args:
        max_context: most tokens in one sequence, prompt and continuation together.
    """

    name: str
    vocab_size: int = VOCAB_SIZE
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    max_context: int
    seed: int

    @property
    def d_head(self) -> int:
        """Width of one attention head; even, because positions rotate pairs."""
        return self.d_model // self.n_heads


@attrs.frozen(kw_only=True)
class LoraSettings:
    """What an adapter adapts, and the seed of its first weights (None: a fresh one each time).

    Args:
        rank: inner width of every adapter, 1 up to the model's d_model.
        train_attn: adapt the query, key, value and output matrices of every layer.
        train_mlp: adapt both matrices of every feed-forward block.
        train_unembed: adapt the matrix from the last hidden state to the logits.
    """

    rank: int = 32
    seed: int | None = None
    train_attn: bool = True
    train_mlp: bool = True
    train_unembed: bool = True

    def check(self, config: ModelConfig) -> None:
        """Raise EngineError unless these settings fit the base model."""
        if not 1 <= self.rank <= config.d_model:
            raise EngineError(
                f"LoraSettings: rank is {self.rank} but {config.name} takes 1 to {config.d_model}; "
                "choose a rank in that range"
            )
        if self.seed is not None and self.seed < 0:
            raise EngineError(f"LoraSettings: seed is {self.seed}; pass 0 or more, or None for a random one")
        if not (self.train_attn or self.train_mlp or self.train_unembed):
            raise EngineError(
                "LoraSettings: train_attn, train_mlp and train_unembed are all false, nothing would train; "
                "set at least one of them"
            )


def _registry(*configs: ModelConfig) -> Mapping[str, ModelConfig]:
    return MappingProxyType({config.name: config for config in configs})


BASE_MODELS: Mapping[str, ModelConfig] = _registry(
    ModelConfig(name="tinkerwire/byte-nano", d_model=32, n_layers=2, n_heads=2, d_ff=64, max_context=2048, seed=1),
    ModelConfig(name="tinkerwire/byte-small", d_model=128, n_layers=2, n_heads=4, d_ff=512, max_context=2048, seed=2),
)


def model_config(name: str) -> ModelConfig:
    """The config of a base model by its name, or EngineError."""
    try:
        return BASE_MODELS[name]
    except KeyError:
        raise EngineError(f"base model {name!r} is unknown; choose one of {', '.join(BASE_MODELS)}") from None
