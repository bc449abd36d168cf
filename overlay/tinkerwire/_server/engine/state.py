"""Conversion between the state of a trainable model and named arrays, with validation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinkerwire._server.engine.adamw import AdamW
from tinkerwire._server.engine.arrays import AnyArray, FloatArray
from tinkerwire._server.engine.errors import EngineError

STEP = "adam.step"


def write_state(params: Mapping[str, FloatArray], optimizer: AdamW) -> dict[str, AnyArray]:
    """Copy params, moments (as ``adam.first.NAME`` and ``adam.second.NAME``) and the step to named arrays."""
    arrays: dict[str, AnyArray] = {name: value.copy() for name, value in params.items()}
    arrays |= {f"adam.first.{name}": value.copy() for name, value in optimizer.first.items()}
    arrays |= {f"adam.second.{name}": value.copy() for name, value in optimizer.second.items()}
    arrays[STEP] = np.array(optimizer.step, dtype=np.int64)
    return arrays


def read_state(
    template: Mapping[str, FloatArray], arrays: Mapping[str, AnyArray], optimizer: bool
) -> tuple[dict[str, FloatArray], AdamW]:
    """Return params and optimizer from arrays, with the names, shapes and dtypes of `template`.

    Raises:
        EngineError: an array is missing, unexpected or invalid.
    """
    unexpected = [name for name in arrays if name.startswith("lora.") and name not in template]
    if unexpected:
        raise EngineError(
            f"load_arrays: this model does not have {unexpected[0]!r}; "
            "load the arrays into a model with the same base and train_* settings"
        )
    params = _read_all(template, arrays, "")
    if not optimizer:
        return params, AdamW.zeros(params)
    if STEP not in arrays:
        raise EngineError(f"load_arrays: {STEP!r} is missing; load a training state, or load without the optimizer")
    first, second = _read_all(template, arrays, "adam.first."), _read_all(template, arrays, "adam.second.")
    return params, AdamW(first, second, int(arrays[STEP]))


def _read_all(template: Mapping[str, FloatArray], arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, FloatArray]:
    return {name: _read_array(prefix + name, arrays, value) for name, value in template.items()}


def _read_array(name: str, arrays: Mapping[str, AnyArray], template: FloatArray) -> FloatArray:
    if name not in arrays:
        raise EngineError(f"load_arrays: {name!r} is missing; pass the arrays of state_arrays unchanged")
    value = arrays[name]
    if value.shape != template.shape:
        raise EngineError(
            f"load_arrays: {name!r} must have shape {template.shape}, got {value.shape}; "
            "load the arrays into a model with the same base and rank"
        )
    if value.dtype.kind != "f" or not np.isfinite(value).all():
        raise EngineError(
            f"load_arrays: {name!r} must only have finite floats, got dtype {value.dtype}; save the state again"
        )
    return value.astype(template.dtype)
