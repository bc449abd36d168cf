"""Numbers in every form a user holds them, to the two dtypes of the wire (float32 and int64) and back.

| given                                    | wire    |                                                   |
|------------------------------------------|---------|---------------------------------------------------|
| float16, float32, bfloat16               | float32 | exact                                             |
| float64                                  | float32 | rounded; warns once when a value changes          |
| int8 to int64, uint8 to uint32, bool     | int64   | exact                                             |
| uint64                                   | int64   | OverflowError beyond 2^63 - 1                     |
| list (nested: rectangular)               | by key  | None, NaN, text and ragged lists are refused      |

Torch tensors are taken when torch is already loaded; it is never imported from here.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

KEY_DTYPES: Mapping[str, str] = {
    "target_tokens": "int64",
    "weights": "float32",
    "advantages": "float32",
    "logprobs": "float32",
    "clip_low_threshold": "float32",
    "clip_high_threshold": "float32",
}
"""The dtype of a plain list under each key that the wire knows."""


class PrecisionWarning(UserWarning):
    """Values were rounded to float32 on their way to the wire."""


_warned: set[str] = set()


def wire_array(name: str, value: Any) -> Array:
    """The value as a contiguous float32 or int64 array of its own shape, without a copy where none is needed.

    Args:
        name: what errors call the value.
        value: numpy array or scalar, torch tensor, or nested list of numbers (dtype by :data:`KEY_DTYPES`).

    Raises:
        TypeError: not numbers, or a dtype that has no wire form.
        ValueError: a ragged list, a list under an unknown key, None, NaN or infinity (with the position).
        OverflowError: a number that does not fit.
    """
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
    elif _is_torch(value):
        array = _from_torch(value)
    elif isinstance(value, list | tuple):
        return _from_list(name, value)
    else:
        raise TypeError(f"{name}: {type(value).__name__} is not an array, a tensor or a list of numbers")
    return _to_wire_dtype(name, array)


def wire_dtype(array: Array) -> str:
    """The wire's name for the dtype of a wire array."""
    return "int64" if array.dtype == np.int64 else "float32"


def token_ids(name: str, tokens: Any) -> Any:
    """Token ids as they are given, once it is sure that each is a whole number of 64 bits: a list or an array.

    Raises:
        TypeError: a token that is no int, with its position.
        OverflowError: a token beyond 64 bits, with its position.
    """
    if _is_torch(tokens):
        tokens = _from_torch(tokens)
    if isinstance(tokens, np.ndarray):
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise TypeError(
                f"{name}: expected a 1-D array of integers, got {tokens.ndim}-D {tokens.dtype}; "
                "flatten it or cast it with .astype('int64')"
            )
        return np.ascontiguousarray(tokens)
    if not isinstance(tokens, Sequence) or isinstance(tokens, str | bytes):
        raise TypeError(f"{name}: expected a list of token ids, got {type(tokens).__name__}")
    if set(map(type, tokens)) <= {int}:
        found = tokens if isinstance(tokens, list) else list(tokens)
    else:
        found = [_token(name, position, token) for position, token in enumerate(tokens)]
    if found and not (-(2**63) <= min(found) and max(found) < 2**63):
        position = next(i for i, token in enumerate(found) if not -(2**63) <= token < 2**63)
        raise OverflowError(f"{name}[{position}]: {found[position]} does not fit into 64 bits")
    return found


def _token(name: str, position: int, token: Any) -> int:
    if isinstance(token, bool) or not isinstance(token, int | np.integer):
        raise TypeError(f"{name}[{position}]: expected a token id (int), got {token!r} ({type(token).__name__})")
    return int(token)


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _from_torch(tensor: Any) -> Array:
    torch = sys.modules["torch"]
    plain = tensor.detach()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    if plain.dtype == torch.bfloat16:
        plain = plain.to(torch.float32)
    array: Array = plain.cpu().numpy()
    return array


def _from_list(name: str, value: Sequence[Any]) -> Array:
    dtype = KEY_DTYPES.get(name)
    if dtype is None:
        raise ValueError(
            f"{name}: a plain list has no dtype and the wire knows none for this key (known: "
            f"{', '.join(KEY_DTYPES)}); give a numpy array or a TensorData"
        )
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" and array.size + len(value):
        _refuse_list(name, value, ())
    if dtype == "int64" and array.dtype.kind == "f" and array.size:
        _refuse_floats(name, array)
    return _to_wire_dtype(name, array.astype(np.int64) if not array.size and dtype == "int64" else array, dtype)


def _refuse_list(name: str, value: Any, place: tuple[int, ...]) -> None:
    """Say what in a list keeps it from being a rectangular array of numbers; returns only when nothing does."""
    lengths = {len(item) if isinstance(item, list | tuple) else -1 for item in value}
    for position, item in enumerate(value):
        here = (*place, position)
        if isinstance(item, list | tuple):
            _refuse_list(name, item, here)
        elif isinstance(item, int) and not isinstance(item, bool) and not -(2**63) <= item < 2**63:
            raise OverflowError(f"{_at(name, here)}: {item} does not fit into 64 bits")
        elif not isinstance(item, int | float | np.number | np.bool_):
            raise TypeError(f"{_at(name, here)}: expected a number, got {item!r} ({type(item).__name__})")
    if len(lengths) > 1:
        raise ValueError(f"{_at(name, place)}: ragged list, its rows have different lengths; pad them or send 1-D")


def _refuse_floats(name: str, array: Array) -> None:
    position = tuple(int(i) for i in np.argwhere(array == array)[0])
    raise TypeError(f"{_at(name, position)}: expected an int, got {array[position].item()!r} (float)")


def _to_wire_dtype(name: str, array: Array, target: str | None = None) -> Array:
    kind = array.dtype.kind
    if kind not in "biuf":
        if array.dtype.name == "bfloat16":
            array, kind = array.astype(np.float32), "f"
        else:
            raise TypeError(
                f"{name}: dtype {array.dtype} has no wire form; cast it to float32 or int64 "
                "(floats, integers and bool are taken as they are)"
            )
    target = target or ("float32" if kind == "f" else "int64")
    if target == "int64":
        if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
            position = tuple(int(i) for i in np.argwhere(array >= 2**63)[0])
            raise OverflowError(f"{_at(name, position)}: {array[position]} does not fit into int64")
        return np.ascontiguousarray(array, dtype=np.int64)
    _refuse_non_finite(name, array)
    return _to_float32(name, array)


def _refuse_non_finite(name: str, array: Array) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        position = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{_at(name, position)}: {array[position].item()!r} cannot be sent, JSON has only finite numbers"
        )


def _to_float32(name: str, array: Array) -> Array:
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(array, dtype=np.float32)
    if found.dtype == array.dtype or array.dtype.itemsize < 4:
        return found
    if not np.isfinite(found).all():
        position = tuple(int(i) for i in np.argwhere(~np.isfinite(found))[0])
        raise OverflowError(f"{_at(name, position)}: {array[position].item()!r} does not fit into float32")
    # Python floats have no dtype that a user could have chosen better; only arrays are worth a word.
    if name not in _warned and not np.array_equal(found, array):
        _warned.add(name)
        warnings.warn(
            f"{name}: {array.dtype} values are rounded to float32, the only float of the wire; "
            "cast them yourself to silence this (said once per name)",
            PrecisionWarning,
            stacklevel=2,
        )
    return found


def _at(name: str, place: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, place))}]" if place else name
