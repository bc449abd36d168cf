"""Sizes of datums in bytes of a request, as JSON and as protobuf.

Both are computed from the lengths of the parts of a datum, without encoding all of it. They are upper bounds:

| part                    | as JSON, bound                         | as JSON, measured    | as protobuf            |
|-------------------------|----------------------------------------|----------------------|------------------------|
| whole number            | 21                                     | its digits           | 4 (token), 8 (others)  |
| float in a float32 array| 16                                     | the same, or digits  | 4                      |
| float in a list         | 25                                     | its digits           | 4                      |
| image, dmel             | its length in base64                   | the same             | its length             |
| texts (keys, locations) | 6 per byte, the longest escape         | the same             | their length           |
| structure               | a constant per chunk and tensor        | the same             | a constant             |

Most numbers are short, so that the bound of JSON may be far too high. The measured count is close: it counts whole
numbers, which are most of a batch, with the length of the longest one, and fractions in float32 arrays with 16 bytes;
most of them take more than 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import orjson

from tinkerwire_base.lazy_numpy import np
from tinkerwire_generated import models

from .._wire.dialect import Dialect

LONGEST_INT = len("-9223372036854775808,")
LONGEST_NUMBER = len("-2.2250738585072014e-308,")
LONGEST_FLOAT32 = len("-1.17549435e-38,")
MAX_PLAIN = 1e7
"""Whole floats below this are written without an exponent."""
LONGEST_ESCAPE = len("\\u0000")
AROUND_JSON = 200
"""Upper bound of the keys, brackets and short values of a chunk, tensor, span or datum, without the content."""
AROUND_PROTOBUF = 48
"""Upper bound of the tags and lengths of a chunk, tensor, span or datum, on all levels."""
AROUND_REQUEST = 512
"""Upper bound of the rest of a request, without its texts."""

TextOf: TypeAlias = Callable[[Any, str], int]
"""Returns the length of the text of numbers of a dtype."""


class RequestSize(Protocol):
    """Counter of the bytes of datums in one body form."""

    def bound(self, datum: models.Datum) -> int:
        """Return an upper bound of the bytes of a datum."""
        ...

    def measure(self, datum: models.Datum) -> int:
        """Return the closest upper bound that this form has."""
        ...


class ProtobufSize:
    """Sizes of datums in a protobuf request."""

    def bound(self, datum: models.Datum) -> int:
        """Return the bound of the table above."""
        chunks = sum(map(_protobuf_chunk, datum.model_input.chunks))
        tensors = sum(_text(name) + _protobuf_tensor(tensor) for name, tensor in datum.loss_fn_inputs.items())
        spans = (*(datum.model_input_spans or ()), *(datum.loss_fn_input_spans or ()))
        return AROUND_PROTOBUF + chunks + tensors + sum(AROUND_PROTOBUF + _text(span.sequence_id) for span in spans)

    def measure(self, datum: models.Datum) -> int:
        """Return the bound, which is close."""
        return self.bound(datum)


class JsonSize:
    """Sizes of datums in a JSON request."""

    def bound(self, datum: models.Datum) -> int:
        """Return the bound of the table above."""
        return _json_datum(datum, _max_text)

    def measure(self, datum: models.Datum) -> int:
        """Return the measured count of the table above."""
        return _json_datum(datum, _close_text)


class LargerSize:
    """Sizes of datums in a request whose form is not known yet: the larger of several sizes."""

    def __init__(self, *sizes: RequestSize) -> None:
        self._sizes = sizes

    def bound(self, datum: models.Datum) -> int:
        """Return the larger of the bounds."""
        return max(size.bound(datum) for size in self._sizes)

    def measure(self, datum: models.Datum) -> int:
        """Return the larger of the counts."""
        return max(size.measure(datum) for size in self._sizes)


def request_size(dialect: Dialect, name: str, data: Iterable[models.Datum]) -> RequestSize:
    """Return the counter of the bytes of a batch in the body forms that a call may use now."""
    json = JsonSize()
    if name not in dialect.protobuf_operations and not dialect.is_provisional:
        return json
    # Protobuf messages cannot carry pointers to images.
    has_protobuf_form = not any(
        isinstance(chunk, models.ImageAssetPointerChunk) for datum in data for chunk in datum.model_input.chunks
    )
    return ProtobufSize() if has_protobuf_form and not dialect.is_provisional else LargerSize(json, ProtobufSize())


def size_around(model_id: str, batch: models.ForwardBackwardInput) -> int:
    """Return an upper bound of the bytes of a request without its datums, in all forms."""
    config: Mapping[str, float | str] = batch.loss_fn_config or {}
    # Protobuf bodies have each number twice.
    entries = sum(2 * AROUND_PROTOBUF + LONGEST_ESCAPE * (_text(key) + _text(str(config[key]))) for key in config)
    return AROUND_REQUEST + LONGEST_ESCAPE * (_text(model_id) + _text(batch.loss_fn)) + entries


def _protobuf_chunk(chunk: Any) -> int:
    if isinstance(chunk, models.EncodedTextChunk):
        return AROUND_PROTOBUF + 4 * chunk.length
    return AROUND_PROTOBUF + len(_content(chunk)) + _text(_texts(chunk))


def _protobuf_tensor(tensor: models.TensorData) -> int:
    dimensions = 1 if tensor.shape is None else len(tensor.shape)
    width = 4 if tensor.dtype == "float32" else 8
    return AROUND_PROTOBUF + 10 * dimensions + width * len(tensor.raw) + 8 * count_indices(tensor)


def _json_datum(datum: models.Datum, text_of: TextOf) -> int:
    chunks = sum(_json_chunk(chunk, text_of) for chunk in datum.model_input.chunks)
    tensors = sum(
        LONGEST_ESCAPE * _text(name) + _json_tensor(tensor, text_of) for name, tensor in datum.loss_fn_inputs.items()
    )
    return AROUND_JSON + chunks + tensors


def _json_chunk(chunk: Any, text_of: TextOf) -> int:
    if isinstance(chunk, models.EncodedTextChunk):
        return AROUND_JSON + text_of(chunk.raw, "int64")
    return AROUND_JSON + 4 * ((len(_content(chunk)) + 2) // 3) + LONGEST_ESCAPE * _text(_texts(chunk))


def _json_tensor(tensor: models.TensorData, text_of: TextOf) -> int:
    dimensions = 1 if tensor.shape is None else len(tensor.shape)
    indices = 0
    if tensor.sparse_crow_indices is not None and tensor.sparse_col_indices is not None:
        indices = text_of(tensor.sparse_crow_indices, "int64") + text_of(tensor.sparse_col_indices, "int64")
    return AROUND_JSON + LONGEST_INT * dimensions + indices + text_of(tensor.raw, tensor.dtype)


def _max_text(numbers: Any, dtype: str) -> int:
    """Return the maximum length of the text of as many numbers, with commas."""
    if dtype == "int64":
        return LONGEST_INT * len(numbers)
    is_float32 = isinstance(numbers, np.ndarray) and numbers.dtype == np.dtype("float32")
    return (LONGEST_FLOAT32 if is_float32 else LONGEST_NUMBER) * len(numbers)


def _close_text(numbers: Any, dtype: str) -> int:
    """Return a close upper bound of the length of the text of numbers, with commas."""
    if not isinstance(numbers, np.ndarray) or numbers.dtype == np.float64:
        # Encoding a list is faster than a search for its largest number. The text of a float64 may be short.
        return len(orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)) + 1
    if not numbers.size:
        return 0
    is_whole = numbers.dtype.kind in "iub"
    if not is_whole and not float(numbers[0]).is_integer():
        # Fast path for arrays of fractions.
        return _max_text(numbers, dtype)
    low, high = numbers.min(), numbers.max()
    if not is_whole and -MAX_PLAIN < low <= high < MAX_PLAIN and (numbers == np.trunc(numbers)).all():
        # Whole floats, for example weights of 0.0 and 1.0; -0.0 is possible.
        return len(numbers) * (max(len(str(int(low))), len(str(int(high)))) + len("-.0,"))
    if not is_whole:
        return _max_text(numbers, dtype)
    return len(numbers) * (max(len(str(int(low))), len(str(int(high)))) + 1)


def count_indices(tensor: models.TensorData) -> int:
    """Return the number of row and column indices of a tensor; 0 unless it is sparse."""
    if tensor.sparse_crow_indices is None or tensor.sparse_col_indices is None:
        return 0
    return len(tensor.sparse_crow_indices) + len(tensor.sparse_col_indices)


def _content(chunk: Any) -> bytes:
    """Return the binary content of a chunk."""
    if isinstance(chunk, models.DmelChunk):
        return chunk.dmel
    return chunk.data if isinstance(chunk, models.ImageChunk) else b""


def _texts(chunk: Any) -> str:
    return f"{getattr(chunk, 'format', '')}{getattr(chunk, 'location', '')}"


def _text(value: str) -> int:
    return len(value.encode(errors="surrogatepass"))
