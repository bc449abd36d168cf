"""Numbers and tensors of protobuf: little-endian bytes to arrays without a copy, and back."""

from __future__ import annotations

import contextlib
import itertools
import math
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.list_array import EMPTY_LOGPROB, EMPTY_TOKEN, TopkLogprobs
from tinkerwire_base.tensors import wire_array
from tinkerwire_base.validators import INT32_MAX, INT32_MIN, NumberRangeError
from tinkerwire_generated import models
from tinkerwire_generated.protobuf import ENUM_VALUES

FLOAT32, INT64, INT32, BFLOAT16 = (
    ENUM_VALUES["DType"][f"DTYPE_{name}"] for name in ("FLOAT32", "INT64", "INT32", "BFLOAT16")
)
"""The dtypes of the wire, by their numbers."""

_NUMPY_CODES: Mapping[int, str] = {
    FLOAT32: "<f4",
    INT64: "<i8",
    INT32: "<i4",
    BFLOAT16: "<u2",
}
"""The numpy codes of the dtypes; numpy has no bfloat16, so its bits are read as integers."""
_numpy_dtypes: dict[int, np.dtype[Any]] = {}
"""The dtypes of numpy that were needed so far; making one takes as long as reading an array."""
DTYPE_NUMBERS = {"float32": FLOAT32, "int64": INT64}
"""The numbers of the dtypes of models."""
_FILLING = (EMPTY_TOKEN, EMPTY_LOGPROB)
"""Filler of a position with fewer than k top-k logprobs."""

TopK = list[list[tuple[int, float]] | None]


def numbers(place: str, data: bytes, dtype: int) -> Array:
    """Return the flat array of bytes: bfloat16 widened to float32 bit by bit, int32 to int64.

    Raises:
        ValueError: an unknown dtype, or bytes that end within a number.
    """
    return _widen(raw_array(place, data, dtype))


def raw_array(place: str, data: bytes, dtype: int) -> Array:
    """Return the flat array of bytes unchanged: no copy, and read-only. Errors are those of :func:`numbers`."""
    kind = _numpy_dtypes.get(dtype)
    if kind is None:
        if dtype not in _NUMPY_CODES:
            raise ValueError(f"{place}: dtype must be one of {', '.join(map(str, _NUMPY_CODES))}, got {dtype}")
        kind = _numpy_dtypes[dtype] = np.dtype(_NUMPY_CODES[dtype])
    try:
        return np.frombuffer(data, kind)
    except ValueError:
        raise ValueError(f"{place}: length must be a multiple of {kind.itemsize} bytes, got {len(data)}") from None


def _widen(array: Array) -> Array:
    if array.dtype.itemsize == 2:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int64, copy=False)


def int32_bytes(place: str, values: Any) -> bytes:
    """Return integers as the bytes of int32; OverflowError with the position, TypeError for other values."""
    if isinstance(values, list):
        # A fifth of numpy's time; what it does not take is looked at below.
        with contextlib.suppress(struct.error):
            return struct.pack(f"<{len(values)}i", *values)
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{place}: expected a 1-D list of 64-bit integers, got {array.ndim}-D {array.dtype}")
    if array.size and not (array.min() >= INT32_MIN and array.max() <= INT32_MAX):
        position = int(np.argmax((array < INT32_MIN) | (array > INT32_MAX)))
        raise NumberRangeError(f"{place}[{position}]: {array[position]} does not fit into int32, the type in protobuf")
    return array.astype("<i4").tobytes()


def int32_buffer(place: str, values: Any) -> Any:
    """Return integers as the bytes of int32, without a copy if possible. Errors: see :func:`int32_bytes`."""
    is_int32 = isinstance(values, np.ndarray) and values.dtype == np.int32 and values.ndim == 1
    return buffer_of(values) if is_int32 else int32_bytes(place, values)


def float32_bytes(place: str, values: Any) -> bytes:
    """Return numbers as the bytes of float32, None as NaN; raise ValueError for values that are not numbers."""
    try:
        with np.errstate(over="ignore"):
            return np.asarray(values, "<f4").tobytes()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: cannot be read as float32: {error}") from None


def put_tensor(message: Any, place: str, tensor: models.TensorData) -> None:
    """Fill a Tensor message; raise ValueError or OverflowError with the place for data that does not fit its dtype."""
    values = wire_values(place, tensor)
    message.dtype = DTYPE_NUMBERS[tensor.dtype]
    message.shape.extend([len(values)] if tensor.shape is None else tensor.shape)
    if tensor.sparse_crow_indices is None:
        message.dense = buffer_of(values).tobytes()
        return
    message.sparse_csr.values = buffer_of(values).tobytes()
    message.sparse_csr.crow_indices = np.asarray(tensor.sparse_crow_indices, "<i8").tobytes()
    message.sparse_csr.col_indices = np.asarray(tensor.sparse_col_indices, "<i8").tobytes()


def tensor_of(place: str, message: Any) -> models.TensorData:
    """Return the tensor of a Tensor message; raise ValueError with the place if it is malformed."""
    encoding = message.WhichOneof("encoding")
    if encoding is None:
        raise ValueError(f"{place}: must hold dense or sparse values, got neither")
    sparse = message.sparse_csr if encoding == "sparse_csr" else None
    values = numbers(place, sparse.values if sparse else message.dense, message.dtype)
    shape = list(message.shape)
    if sparse:
        starts = numbers(f"{place}.crow_indices", sparse.crow_indices, INT64)
        columns = numbers(f"{place}.col_indices", sparse.col_indices, INT64)
        return _tensor(place, values, shape, sparse_crow_indices=starts, sparse_col_indices=columns)
    # Official clients leave the shape out when the user gave none.
    return _tensor(place, values, shape if shape or len(values) == 1 else [len(values)])


def split(place: str, message: Any) -> Iterator[models.TensorData]:
    """Return the tensors of a BatchedTensor as views of one array; raise ValueError with the place if malformed."""
    raw = raw_array(place, message.data, message.dtype)
    # Some servers send a message for each datum, and numpy takes microseconds for each step over two offsets.
    offsets: list[int] = raw_array(f"{place}.offsets", message.offsets, INT64).tolist()
    size, trailing = raw.dtype.itemsize, list(message.trailing_shape)
    if not offsets and not len(raw):
        return
    if not offsets or offsets[0] != 0 or offsets[-1] != raw.nbytes:
        raise ValueError(f"{place}.offsets: must start at 0 and end at {raw.nbytes}, the number of bytes of data")
    if any(start > end or end % size for start, end in itertools.pairwise(offsets)):
        raise ValueError(f"{place}.offsets: must be ascending multiples of {size} bytes")
    if min(trailing, default=0) < 0:
        raise ValueError(f"{place}.trailing_shape: lengths must be at least 0, got {trailing}")
    values, row = _widen(raw), math.prod(trailing)
    bounds = (offset // size for offset in offsets)
    for position, (start, end) in enumerate(itertools.pairwise(bounds)):
        if row and (end - start) % row:
            raise ValueError(f"{place}[{position}]: {end - start} values do not fill rows of {trailing}")
        shape = [(end - start) // row if row else 0, *trailing]
        yield _tensor(f"{place}[{position}]", values[start:end], shape)


def join(message: Any, place: str, tensors: Sequence[models.TensorData]) -> None:
    """Fill a BatchedTensor with tensors that share a dtype and all dimensions but the first.

    Raises:
        ValueError: a scalar, or rows without values, with the place.
    """
    trailing = trailing_shape(place, tensors[0])
    parts = [wire_values(f"{place}[{position}]", tensor) for position, tensor in enumerate(tensors)]
    if not math.prod(trailing) and any(tensor.shape and tensor.shape[0] for tensor in tensors):
        raise ValueError(f"{place}: rows of shape {trailing} have no values, so protobuf cannot count the rows")
    message.dtype = DTYPE_NUMBERS[tensors[0].dtype]
    message.trailing_shape.extend(trailing)
    message.offsets = np.cumsum([0, *(part.nbytes for part in parts)], dtype="<i8").tobytes()
    message.data = b"".join(map(buffer_of, parts))


def trailing_shape(place: str, tensor: models.TensorData) -> list[int]:
    """Return the lengths of all dimensions but the first; raise ValueError for a scalar."""
    if tensor.shape is not None and not tensor.shape:
        raise ValueError(f"{place}: protobuf cannot hold a tensor without dimensions; give it shape [1]")
    return list(tensor.shape or [0])[1:]


def topk_of(place: str, message: Any) -> TopkLogprobs | None:
    """Return the top-k tokens at each position; None without positions or tokens; ValueError if malformed."""
    size = message.length * message.k
    tokens = raw_array(f"{place}.token_ids", message.token_ids, INT32)
    logprobs = raw_array(f"{place}.logprobs", message.logprobs, FLOAT32)
    if len(tokens) != size or len(logprobs) != size:
        raise ValueError(
            f"{place}: expected {message.length} positions of {message.k} tokens and logprobs, "
            f"got {len(tokens)} tokens and {len(logprobs)} logprobs"
        )
    return TopkLogprobs(tokens.reshape(-1, message.k), logprobs.reshape(-1, message.k)) if size else None


def put_topk(message: Any, place: str, topk: TopK) -> None:
    """Fill a TopkLogprobs message; errors name the position of a token or logprob that does not fit."""
    k = max([1, *(len(row) for row in topk if row)])
    cells = [cell for row in topk for cell in [*(row or []), *[_FILLING] * (k - len(row or []))]]
    message.k, message.length = k, len(topk)
    message.token_ids = int32_bytes(f"{place} tokens", [token for token, _ in cells])
    message.logprobs = float32_bytes(f"{place} logprobs", [logprob for _, logprob in cells])


def wire_values(place: str, tensor: models.TensorData) -> Array:
    """Return the values in the wire's dtype; NumberRangeError for one that does not fit."""
    data: Any = tensor.raw
    is_array = isinstance(data, np.ndarray)
    if type(data) is np.ndarray and data.dtype == tensor.dtype:
        return data
    try:
        if is_array and tensor.dtype == "int64":
            return wire_array(place, data)
        values = tensor.values()
    except NumberRangeError:
        raise
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    if tensor.dtype == "float32" and not (is_array and data.dtype == np.float32):
        overflows = np.isfinite(np.asarray(data, np.float64)) & ~np.isfinite(values)
        if overflows.any():
            position = int(np.argmax(overflows))
            raise NumberRangeError(f"{place}[{position}]: {data[position]!r} does not fit into float32")
    return values


def buffer_of(values: Array) -> Any:
    """Return the little-endian bytes of values in native byte order as an array, without a copy if possible."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return (flat if sys.byteorder == "little" else flat.byteswap()).view(np.uint8)


def _tensor(place: str, values: Array, shape: list[int], **rows: Array) -> models.TensorData:
    dtype: Any = "int64" if values.dtype.kind == "i" else "float32"
    try:
        return models.TensorData(data=values, dtype=dtype, shape=shape, **rows)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None
