"""The frozen weights of a base model: random, well scaled, and bit-identical for the same name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

import attrs
import numpy as np
import numpy.typing as npt

from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.blas import use_one_thread
from tinkerwire._server.engine.config import PATCH_VALUES, LoraSettings, ModelConfig, model_config
from tinkerwire._server.engine.errors import EngineError


@attrs.frozen(eq=False)
class BaseModel:
    """A config and its read-only weights; a matrix of shape (inputs, outputs) maps x to x @ matrix."""

    config: ModelConfig
    weights: Mapping[str, FloatArray]

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """float32 or float64."""
        return self.weights["embedding"].dtype


def adapted_matrices(config: ModelConfig, settings: LoraSettings) -> tuple[str, ...]:
    """Return the names of the weights with an adapter, in a fixed order."""
    names: list[str] = []
    for layer in range(config.n_layers):
        if settings.train_attn:
            names += [f"layers.{layer}.attn.{part}" for part in "qkvo"]
        if settings.train_mlp:
            names += [f"layers.{layer}.mlp.up", f"layers.{layer}.mlp.down"]
    if settings.train_unembed:
        names.append("unembedding")
    return tuple(names)


def base_model(name: str, dtype: npt.DTypeLike = np.float32) -> BaseModel:
    """Return a base model, which is created once and then shared.

    Args:
        name: name of the model.
        dtype: float32, or float64 for exact checks (the float32 weights, widened).

    Raises:
        EngineError: the name is unknown or the dtype is not supported.
    """
    use_one_thread()
    resolved = np.dtype(dtype)
    if resolved not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise EngineError(f"base_model: dtype must be float32 or float64, got {resolved}")
    return _load(model_config(name), resolved)


@lru_cache(maxsize=8)
def _load(config: ModelConfig, dtype: np.dtype[np.floating]) -> BaseModel:
    weights = {name: value.astype(dtype) for name, value in _random_weights(config).items()}
    for value in weights.values():
        value.flags.writeable = False
    return BaseModel(config, MappingProxyType(weights))


def _random_weights(config: ModelConfig) -> dict[str, FloatArray]:
    """Draw normal weights; matrices into the residual stream are small, so that depth adds little noise."""
    rng = np.random.default_rng(config.seed)
    c, ff = config.d_model, config.d_ff

    def matrix(inputs: int, outputs: int, gain: float) -> FloatArray:
        values: FloatArray = rng.standard_normal((inputs, outputs)) * gain * inputs**-0.5
        return values.astype(np.float32)

    residual = (2 * config.n_layers) ** -0.5
    weights: dict[str, FloatArray] = {"embedding": rng.standard_normal((config.vocab_size, c)).astype(np.float32)}
    for layer in range(config.n_layers):
        for part in "qkv":
            weights[f"layers.{layer}.attn.{part}"] = matrix(c, c, 1.0)
        weights[f"layers.{layer}.attn.o"] = matrix(c, c, residual)
        weights[f"layers.{layer}.mlp.up"] = matrix(c, ff, 1.0)
        weights[f"layers.{layer}.mlp.down"] = matrix(ff, c, 0.5 * residual)
    # With a tenth of this scale, byte-small takes three times as many steps to the same loss.
    weights["unembedding"] = matrix(c, config.vocab_size, 1.0)
    # Embeds a patch of an image and a constant, on the scale of the embedding of a token. Drawn last, so that images
    # change no other weight.
    weights["patch_embedding"] = matrix(PATCH_VALUES + 1, c, 3**0.5)
    return weights
