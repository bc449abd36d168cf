"""Configs of the base models, and settings of LoRA adapters."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from tinkerwire._server.engine.errors import EngineError

END_OF_TEXT = 256
"""The only token that is not a byte. It is not special: to end on it, pass it as a stop token."""

PATCH_VALUES = 48
"""Number of values of a patch of an image, each from -1 to 1."""

VOCAB_SIZE = 257
"""256 byte values and `END_OF_TEXT`."""


@attrs.frozen(kw_only=True)
class ModelConfig:
    """The shape of a base model and the seed of its weights.

    Args:
        name: name of the model.
        vocab_size: number of tokens in the vocabulary.
        d_model: width of the residual stream.
        n_layers: number of layers.
        n_heads: number of attention heads.
        d_ff: width of the feed-forward layer.
        max_context: maximum number of tokens in a sequence, including the continuation.
        seed: seed of the weights.
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
        """Width of an attention head; even, because rotary positions rotate pairs."""
        return self.d_model // self.n_heads


@attrs.frozen(kw_only=True)
class LoraSettings:
    """The matrices that an adapter adapts, and its rank and seed.

    Args:
        rank: inner width of the adapter, from 1 to the model's d_model.
        seed: seed of the initial weights; None draws a new seed each time.
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
        """Check that these settings fit the base model.

        Raises:
            EngineError: a setting does not fit.
        """
        if not 1 <= self.rank <= config.d_model:
            raise EngineError(f"LoraSettings: rank must be 1 to {config.d_model} for {config.name}, got {self.rank}")
        if self.seed is not None and self.seed < 0:
            raise EngineError(f"LoraSettings: seed must be at least 0, or None for a random seed, got {self.seed}")
        if not (self.train_attn or self.train_mlp or self.train_unembed):
            raise EngineError("LoraSettings: at least one of train_attn, train_mlp and train_unembed must be true")


BASE_MODELS: Mapping[str, ModelConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            ModelConfig(
                name="tinkerwire/byte-nano", d_model=32, n_layers=2, n_heads=2, d_ff=64, max_context=2048, seed=1
            ),
            ModelConfig(
                name="tinkerwire/byte-small", d_model=128, n_layers=2, n_heads=4, d_ff=512, max_context=2048, seed=2
            ),
        )
    }
)


def model_config(name: str) -> ModelConfig:
    """Return the config of a base model.

    Raises:
        EngineError: the name is unknown.
    """
    try:
        return BASE_MODELS[name]
    except KeyError:
        raise EngineError(f"unknown base model {name!r}; choose one of {', '.join(BASE_MODELS)}") from None
