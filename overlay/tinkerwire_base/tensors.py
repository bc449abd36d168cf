"""Conversion of numbers between the forms that users have and the two dtypes of the wire (float32 and int64).

| input                                    | wire    |                                                   |
|------------------------------------------|---------|---------------------------------------------------|
| float16, float32, bfloat16               | float32 | exact                                             |
| float64                                  | float32 | rounded; warns once per name when a value changes |
| int8 to int64, uint8 to uint32, bool     | int64   | exact                                             |
| uint64                                   | int64   | NumberRangeError beyond 2^63 - 1               |
| list (nested: rectangular)               | by key  | None, text, ragged rows, floats for int: refused  |

NaN and infinity pass, as protobuf carries them; JSON requests are checked when they are encoded. Floats in plain lists
are rounded silently, because a list has no dtype.

Torch tensors are recognized if torch is loaded; this module never imports it.
"""

from __future__ import annotations

import math
import struct
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NoReturn

import orjson

from .lazy_numpy import Array, np
from .short_repr import short_repr
from .validators import INT64_MAX, INT64_MIN, NumberRangeError

FLOAT32_MAX = (2 - 2**-23) * 2.0**127
NO_DTYPES: Mapping[str, str] = {}


class PrecisionWarning(UserWarning):
    """Values were rounded to float32 on their way to the wire."""


_warned: set[str] = set()
_ORDER = "<" if sys.byteorder == "little" else ">"
_WIRE_DTYPES = {f"{_ORDER}f4": "float32", f"{_ORDER}i8": "int64"}
"""The dtypes of the wire by numpy's name of them, in native byte order."""


def wire_array(name: str, value: Any, list_dtypes: Mapping[str, str] = NO_DTYPES) -> Array:
    """Return the value as a contiguous float32 or int64 array of its shape, without a needless copy.

    Args:
        name: the name of the value in errors.
        value: numpy array or scalar, torch tensor, or nested list of numbers.
        list_dtypes: dtype of a plain list by name.

    Raises:
        TypeError: not numbers, or a dtype that has no wire form.
        ValueError: a ragged list, a list under an unknown key, or None.
        NumberRangeError: a number that does not fit.
    """
    if type(value) is np.ndarray and value.dtype.str in _WIRE_DTYPES and value.flags.c_contiguous:
        return value
    if isinstance(value, (list, tuple)):
        return _from_list(name, value, list_dtypes)
    if isinstance(value, np.ndarray | np.generic):
        array = plain_array(name, np.asanyarray(value))
    elif _is_torch(value):
        array = _from_torch(name, value)
    else:
        raise TypeError(
            f"{name}: expected an array, a tensor or a list of numbers, got {type(value).__name__}; "
            "convert it with numpy.asarray"
        )
    return _to_wire_dtype(name, array)


def plain_array(name: str, array: Array) -> Array:
    """Return an array as a native, contiguous numpy.ndarray, without a needless copy.

    Raises:
        TypeError: it has masked values.
    """
    if type(array) is np.ndarray and array.dtype.isnative and array.flags.c_contiguous:
        return array
    if _is_masked(array):
        raise TypeError(f"{name}: masked arrays cannot be sent; pass a plain array, such as array.filled(0)")
    return np.asarray(array, array.dtype.newbyteorder("="), order="C")


def is_torch_installed() -> bool:
    """Return whether torch can be imported, without an import."""
    return "torch" in sys.modules or find_spec("torch") is not None


def flat_array(values: Sequence[Any], dtype: str) -> Array:
    """Return numbers as a flat array of a dtype, with numpy's conversion and errors; None among floats is NaN."""
    kind = np.dtype(dtype)
    try:
        # Takes a third of the time of numpy's conversion, which handles the values that struct rejects. Without other
        # arguments, Python passes a tuple as it is instead of copying it.
        packed = struct.Struct(f"{len(values)}{kind.char}").pack(*values)
    except (struct.error, OverflowError):
        return np.asarray(values, dtype)
    # The bytes of a bytearray can be written.
    return np.frombuffer(bytearray(packed), kind)


def is_number_list(values: Any, dtype: str) -> bool:
    """Return whether a value is a flat list of Python's ints or, for float32, of its floats and ints.

    False also for lists of int64 that require a closer look: with items below 0 or beyond 53 bits.
    """
    if not isinstance(values, (list, tuple)):
        return False
    if dtype == "int64":
        return _are_small_ints(values)
    types = list(map(type, values))
    # For most lists this takes half the time of the set.
    return types.count(float) == len(types) or set(types) <= {int, float}


def compute_norm(numbers: Sequence[float]) -> float:
    """Return the Euclidean norm of numbers, which no magnitude exceeds; NaN or infinity if one of them is."""
    try:
        return math.hypot(*numbers)
    except OverflowError:
        return math.inf


def wire_dtype(array: Array) -> str:
    """Return the wire's name for the dtype of a wire array."""
    return "int64" if array.dtype.kind == "i" else "float32"


def is_wire_array(value: Any, dtype: str) -> bool:
    """Return whether a value is a contiguous array of a dtype of the wire in native byte order."""
    return type(value) is np.ndarray and _WIRE_DTYPES.get(value.dtype.str) == dtype and value.flags.c_contiguous


def token_ids(name: str, tokens: Any) -> Any:
    """Return token ids, a list or an array, after a check that each is an integer of 64 bits.

    Raises:
        TypeError: a token is not an int; the error has its position.
        NumberRangeError: a token does not fit into 64 bits; the error has its position.
    """
    if isinstance(tokens, (list, tuple)) and _are_small_ints(tokens):
        return tokens
    if _is_torch(tokens):
        tokens = _from_torch(name, tokens)
    if isinstance(tokens, np.ndarray):
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise TypeError(
                f"{name}: expected a 1-D array of integers, got {tokens.ndim}-D {tokens.dtype}; "
                "flatten it or cast it with .astype('int64')"
            )
        if tokens.dtype == np.uint64:
            return _to_wire_dtype(name, tokens)
        return plain_array(name, tokens)
    if not isinstance(tokens, Sequence) or isinstance(tokens, str | bytes | bytearray):
        raise TypeError(f"{name}: expected a list of token ids, got {type(tokens).__name__}")
    if isinstance(tokens, (list, tuple)) and set(map(type, tokens)) == {int}:
        found = tokens
    else:
        found = [_token(name, position, token) for position, token in enumerate(tokens)]
    if found and not INT64_MIN <= min(found) <= max(found) <= INT64_MAX:
        _refuse_large(name, found)
    return found


def _are_small_ints(values: Sequence[Any]) -> bool:
    """Return whether all values are ints of 53 bits and none is below 0."""
    # The text of ints contains only digits and commas. A check of each token would take ten times as long, which is
    # most of the cost of building a large batch.
    try:
        text = orjson.dumps(values, option=orjson.OPT_STRICT_INTEGER)
    except TypeError:
        return False
    return not text[1:-1].translate(None, b"0123456789,")


def _token(name: str, position: int, token: Any) -> int:
    if isinstance(token, bool) or not isinstance(token, int | np.integer):
        raise TypeError(f"{name}[{position}]: expected an int, got {short_repr(token)} ({type(token).__name__})")
    return int(token)


def _refuse_large(name: str, values: Sequence[int]) -> None:
    position = next(i for i, value in enumerate(values) if not INT64_MIN <= value <= INT64_MAX)
    raise NumberRangeError(f"{name}[{position}]: {values[position]} does not fit into 64 bits")


def _is_torch(value: Any) -> bool:
    # While another thread imports torch, the module has no Tensor yet.
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(value, kind)


def _from_torch(name: str, tensor: Any) -> Array:
    torch = sys.modules["torch"]
    plain = tensor.detach()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    if plain.dtype == torch.bfloat16:
        plain = plain.to(torch.float32)
    try:
        array: Array = plain.cpu().numpy()
    except (TypeError, NotImplementedError, RuntimeError) as error:
        raise TypeError(
            f"{name}: {tensor.dtype} on {tensor.device} cannot be read ({error}); cast it to float32 or int64"
        ) from None
    return array


def _from_list(name: str, value: Sequence[Any], list_dtypes: Mapping[str, str]) -> Array:
    dtype = list_dtypes.get(name)
    if dtype is None:
        raise ValueError(
            f"{name}: a plain list has no dtype, and this key has no default dtype (known keys: "
            f"{', '.join(list_dtypes)}); pass a numpy array or a TensorData"
        )
    return wire_list(name, value, dtype)


def wire_list(name: str, value: Sequence[Any], dtype: str) -> Array:
    """Return a nested list of numbers as an array of a dtype of the wire. Errors: see :func:`wire_array`."""
    if is_number_list(value, dtype):
        array = np.empty(len(value), dtype)
        try:
            # The standard format, unlike the native one, refuses numbers beyond float32.
            struct.pack_into(f"={len(value)}{'q' if dtype == 'int64' else 'f'}", array.data, 0, *value)
        except (OverflowError, struct.error):
            _refuse_beyond_float32(name, value)
        return array
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in ("biu" if dtype == "int64" else "biuf"):
        _refuse_list(name, value, dtype, ())
        array = np.array(value, dtype=dtype)
    return _to_wire_dtype(name, array, dtype, is_list=True)


def _refuse_beyond_float32(name: str, values: Sequence[float]) -> NoReturn:
    """Raise NumberRangeError for the first number that float32 cannot hold."""
    position = next(i for i, item in enumerate(values) if not _fits_float32(item))
    raise NumberRangeError(f"{name}[{position}]: {short_repr(values[position])} does not fit into float32") from None


def _fits_float32(number: float) -> bool:
    try:
        struct.pack("=f", number)
    except (OverflowError, struct.error):
        return False
    return True


def _refuse_list(name: str, value: Any, dtype: str, place: tuple[int, ...]) -> None:
    """Raise an error for the first item that keeps a list from being a rectangular array of ``dtype``."""
    kinds = (int, np.integer, np.bool_, *((float, np.floating) if dtype == "float32" else ()))
    lengths = {len(item) if isinstance(item, list | tuple | np.ndarray) else -1 for item in value}
    for position, item in enumerate(value):
        here = (*place, position)
        if isinstance(item, list | tuple | np.ndarray):
            _refuse_list(name, item, dtype, here)
        elif isinstance(item, int | np.integer) and not INT64_MIN <= int(item) <= INT64_MAX:
            raise NumberRangeError(f"{_at(name, here)}: {item} does not fit into 64 bits")
        elif not isinstance(item, kinds):
            expected = "an int" if dtype == "int64" else "a number"
            raise TypeError(f"{_at(name, here)}: expected {expected}, got {short_repr(item)} ({type(item).__name__})")
    if len(lengths) > 1:
        raise ValueError(f"{_at(name, place)}: rows must have equal lengths; pad them or pass a 1-D list")


def _to_wire_dtype(name: str, array: Array, target: str | None = None, *, is_list: bool = False) -> Array:
    """Return an array of a dtype of the wire, by default the closest one.

    ``is_list``: numpy chose the dtype of the array, so rounding causes no warning.
    """
    kind = array.dtype.kind
    if kind not in "biuf":
        if array.dtype.name == "bfloat16":
            array, kind = array.astype(np.float32), "f"
        else:
            raise TypeError(
                f"{name}: dtype {array.dtype} has no wire form; cast it to float32 or int64 "
                "(floats, integers and bool need no cast)"
            )
    target = target or ("float32" if kind == "f" else "int64")
    if target == "int64":
        if array.dtype == np.uint64 and array.size and int(array.max()) > INT64_MAX:
            position = tuple(int(i) for i in np.argwhere(array > INT64_MAX)[0])
            raise NumberRangeError(f"{_at(name, position)}: {array[position]} does not fit into int64")
        return np.asarray(array, dtype=np.int64, order="C")
    return _to_float32(name, array, quiet=is_list)


def _is_masked(value: Any) -> bool:
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)


def refuse_non_finite(name: str, array: Array, reason: str = "JSON has only finite numbers") -> None:
    """Raise ValueError naming the first NaN or infinity."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        position = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{_at(name, position)}: {float(array[position])!r} cannot be sent, because {reason}")


def _to_float32(name: str, array: Array, *, quiet: bool) -> Array:
    if array.dtype.itemsize <= 4:
        return np.asarray(array, dtype=np.float32, order="C")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = np.asarray(array, dtype=np.float32, order="C")
    is_infinite = np.isinf(found)
    if is_infinite.any() and (lost := is_infinite & np.isfinite(array)).any():
        position = tuple(int(i) for i in np.argwhere(lost)[0])
        raise NumberRangeError(f"{_at(name, position)}: {array[position].item()!r} does not fit into float32")
    if not quiet and name not in _warned and not np.array_equal(found, array, equal_nan=True):
        _warned.add(name)
        warnings.warn(
            f"{name}: {array.dtype} values are rounded to float32, the only float of the wire; "
            "cast them yourself to silence this warning (shown once per name)",
            PrecisionWarning,
            stacklevel=_level_of_caller(),
        )
    return found


def _level_of_caller() -> int:
    """Return the number of frames of this project, and of its attrs classes, between a warning and its caller."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith("tinkerwire") and "<attrs" not in frame.f_code.co_filename:
            break
        level, frame = level + 1, frame.f_back
    return level


def _at(name: str, place: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, place))}]" if place else name
