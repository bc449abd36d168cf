"""Readers of log probabilities, of references and of masks, as flat or shaped arrays of float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.short_repr import short_repr
from tinkerwire_generated import models

MASK_INPUTS = ("mask", "weights")
"""Inputs of a datum that hold the weight of each position, in order of preference."""


def read_numbers(name: str, value: Any) -> Array:
    """Return numbers in the form of a list, array, tensor or TensorData as an array of float64.

    Raises:
        TypeError: the value does not hold real numbers.
    """
    plain = value.detach().cpu() if hasattr(value, "detach") else value
    if hasattr(plain, "is_complex"):
        plain = plain.double()
    try:
        array = np.asarray(plain)
        # Numpy would read None as NaN, and True as 1.0.
        if array.dtype.kind in "biuf" and not isinstance(value, str):
            return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name}: expected numbers, got {short_repr(value)}")


def require_items(name: str, value: Any, expected: str) -> None:
    """Raise TypeError unless a value is a list, tuple or array."""
    if isinstance(value, str | bytes | Mapping) or not (hasattr(value, "__len__") and hasattr(value, "__getitem__")):
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}")


def read_outputs(name: str, value: Any) -> list[Array]:
    """Return the log probabilities in a ForwardBackwardOutput, or in a list with those of one datum per item.

    Raises:
        TypeError: the value has another type.
        ValueError: an output has no log probabilities.
    """
    if not isinstance(value, models.ForwardBackwardOutput):
        require_items(name, value, "a ForwardBackwardOutput, or a list with the logprobs of each datum")
        return [read_numbers(f"{name}[{position}]", item) for position, item in enumerate(value)]
    arrays = []
    for position, output in enumerate(value.loss_fn_outputs):
        if "logprobs" not in output:
            names = ", ".join(sorted(output)) or "nothing"
            raise ValueError(f"{name}: output {position} has no logprobs, only {names}; use a loss that returns them")
        arrays.append(output["logprobs"].to_numpy().astype(np.float64))
    return arrays


def read_input(position: int, datum: models.Datum, key: str, shape: Sequence[int], purpose: str) -> Array:
    """Return an input of a datum, which must have a shape.

    Raises:
        ValueError: the datum does not have the input, or the shape differs.
    """
    tensor = datum.loss_fn_inputs.get(key)
    if tensor is None:
        raise ValueError(f"data[{position}]: no {key!r} in loss_fn_inputs; {purpose}")
    array = tensor.to_numpy().astype(np.float64)
    require_shape(f"data[{position}]: {key}", array, shape)
    return array


def read_weights(position: int, datum: models.Datum, key: str | None, shape: Sequence[int]) -> Array | None:
    """Return the weight of each position of a datum; None if the datum has no input with weights.

    Args:
        position: the number of the datum, for errors.
        datum: the datum.
        key: the input with the weights; None for ``mask``, then ``weights``.
        shape: the shape of the log probabilities.

    Raises:
        ValueError: the named input is missing, or weights are negative, not finite or of another shape.
    """
    keys = MASK_INPUTS if key is None else (key,)
    found = next((name for name in keys if name in datum.loss_fn_inputs), None)
    if found is None and key is None:
        return None
    name = found or keys[0]
    weights = read_input(position, datum, name, shape, "mask= names the input with the weight of each position")
    require_weights(f"data[{position}]: {name}", weights)
    return weights


def require_finite_number(name: str, value: object) -> float:
    """Return a finite number; raise TypeError or ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name}: expected a number, got {short_repr(value)}")
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def require_shape(name: str, array: Array, shape: Sequence[int]) -> None:
    """Raise ValueError unless an array has a shape."""
    if array.shape != tuple(shape):
        raise ValueError(f"{name} must have the shape of the logprobs, {list(shape)}, got {list(array.shape)}")


def require_weights(name: str, weights: Array) -> None:
    """Raise ValueError unless weights are finite and at least 0."""
    if not np.isfinite(weights).all() or (weights < 0).any():
        place = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0]
        raise ValueError(f"{name} must hold finite weights of at least 0, got {weights.flat[place]} at {place}")
