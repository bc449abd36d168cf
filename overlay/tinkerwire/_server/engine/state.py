"""A trainable model's state as named arrays, and the checks on reading it back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinkerwire._server.engine.adamw import AdamW
from tinkerwire._server.engine.arrays import AnyArray, FloatArray
from tinkerwire._server.engine.errors import EngineError

__all__ = ["read_state", "write_state"]

STEP = "adam.step"


def write_state(params: Mapping[str, FloatArray], optimizer: AdamW) -> dict[str, AnyArray]:
    """Copies: params under their names, moments under ``adam.first.`` and ``adam.second.``, and the step."""
    arrays: dict[str, AnyArray] = {name: value.copy() for name, value in params.items()}
    arrays |= {f"adam.first.{name}": value.copy() for name, value in optimizer.first.items()}
    arrays |= {f"adam.second.{name}": value.copy() for name, value in optimizer.second.items()}
    arrays[STEP] = np.array(optimizer.step, dtype=np.int64)
    return arrays


def read_state(
    like: Mapping[str, FloatArray], arrays: Mapping[str, AnyArray], optimizer: bool
) -> tuple[dict[str, FloatArray], AdamW]:
    """Params and optimizer from arrays, with the names, shapes and dtypes of `like`."""
    foreign = [name for name in arrays if name.startswith("lora.") and name not in like]
    if foreign:
        raise EngineError(
            f"load_arrays: {foreign[0]!r} has no place in this model; "
            "load it into one with the same base and train_* settings"
        )
    params = _read(like, arrays, "")
    if not optimizer:
        return params, AdamW.zeros(params)
    if STEP not in arrays:
        raise EngineError(f"load_arrays: {STEP!r} is missing; load without the optimizer, or a training state")
    first, second = _read(like, arrays, "adam.first."), _read(like, arrays, "adam.second.")
    return params, AdamW(first, second, int(arrays[STEP]))


def _read(like: Mapping[str, FloatArray], arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, FloatArray]:
    return {name: _read_one(prefix + name, arrays, value) for name, value in like.items()}


def _read_one(name: str, arrays: Mapping[str, AnyArray], like: FloatArray) -> FloatArray:
    if name not in arrays:
        raise EngineError(f"load_arrays: {name!r} is missing; pass the arrays of state_arrays unchanged")
    value = arrays[name]
    if value.shape != like.shape:
        raise EngineError(
            f"load_arrays: {name!r} has shape {value.shape} but this model's is {like.shape}; "
            "load it into a model of the same base and rank"
        )
    if value.dtype.kind != "f" or not np.isfinite(value).all():
        raise EngineError(f"load_arrays: {name!r} ({value.dtype}) holds more than finite floats; save it again")
    return value.astype(like.dtype)
