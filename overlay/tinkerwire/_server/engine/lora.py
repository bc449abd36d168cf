"""Low-rank adapters: initial values, merge into the base, and gradients.

An adapter of a matrix W (inputs, outputs) is A (inputs, rank) and B (rank, outputs); the matrix in use is
W + LORA_ALPHA / rank * A @ B. B starts at zero, so a new adapter changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.base import BaseModel, adapted_matrices
from tinkerwire._server.engine.config import LoraSettings

LORA_ALPHA = 32.0
"""Scale of every adapter, divided by the rank, so that one learning rate suits every rank."""


@attrs.frozen(eq=False)
class Adapter:
    """Read-only adapter values, keyed ``lora.<matrix>.A`` and ``lora.<matrix>.B``, with their base model."""

    base_name: str
    settings: LoraSettings
    params: Mapping[str, FloatArray]

    @classmethod
    def copy_of(cls, base_name: str, settings: LoraSettings, params: Mapping[str, FloatArray]) -> Adapter:
        """Create an adapter with copies of params."""
        copies = {name: value.copy() for name, value in params.items()}
        for value in copies.values():
            value.flags.writeable = False
        return cls(base_name, settings, MappingProxyType(copies))


def init_values(base: BaseModel, settings: LoraSettings) -> dict[str, FloatArray]:
    """Return the values of a new adapter: A is normal with variance 1 / inputs, B is zero."""
    rng = np.random.default_rng(settings.seed)
    params: dict[str, FloatArray] = {}
    for name in adapted_matrices(base.config, settings):
        inputs, outputs = base.weights[name].shape
        # Always drawn as float32, so that a float64 model starts at the same values.
        a = (rng.standard_normal((inputs, settings.rank)) * inputs**-0.5).astype(np.float32)
        params[f"lora.{name}.A"] = a.astype(base.dtype)
        params[f"lora.{name}.B"] = np.zeros((settings.rank, outputs), dtype=base.dtype)
    return params


def merge(base: BaseModel, settings: LoraSettings, params: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the base weights with the adapters added."""
    weights = dict(base.weights)
    scale = LORA_ALPHA / settings.rank
    for name in adapted_matrices(base.config, settings):
        change = params[f"lora.{name}.A"] @ params[f"lora.{name}.B"]
        change *= scale
        weights[name] = weights[name] + change
    return weights


def gradients(
    settings: LoraSettings, params: Mapping[str, FloatArray], matrix_grads: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return the gradients of the adapter values from the gradients of the merged matrices."""
    grads: dict[str, FloatArray] = {}
    scale = LORA_ALPHA / settings.rank
    for name, grad in matrix_grads.items():
        scaled = grad * scale
        grads[f"lora.{name}.A"] = scaled @ params[f"lora.{name}.B"].T
        grads[f"lora.{name}.B"] = params[f"lora.{name}.A"].T @ scaled
    return grads
