"""How many bytes an example takes in a request, as JSON and as protobuf.

Both are counted from the lengths of what an example holds, without encoding it. The counts are upper bounds:

| part                    | as JSON                                | as protobuf                            |
|-------------------------|----------------------------------------|----------------------------------------|
| token of a text chunk   | 21                                     | 4                                      |
| element of a tensor     | 25 (16 in a float32 array)             | 4 for float32, 8 for int64             |
| sparse row or column    | 21 each                                | 8 each                                 |
| image, dmel             | its length in base64                   | its length                             |
| texts (keys, locations) | 6 per byte, the longest escape         | their length                           |
| everything around these | a constant per chunk and tensor        | a constant per chunk, tensor and span  |

The bound of protobuf is within these constants of the truth. That of JSON may be six times too high, because most
numbers are short: :meth:`JsonSize.measure` gives the exact count, at the price of encoding the example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from tinkerwire_base.arrays import np
from tinkerwire_base.converter import Converter
from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.models import (
    Datum,
    DmelChunk,
    EncodedTextChunk,
    ForwardBackwardInput,
    ImageAssetPointerChunk,
    ImageChunk,
    TensorData,
)

from ..wire.dialect import Dialect

LONGEST_INT = len("-9223372036854775808,")
LONGEST_NUMBER = len("-2.2250738585072014e-308,")
LONGEST_FLOAT32 = len("-1.17549435e-38,")
LONGEST_ESCAPE = len("\\u0000")
AROUND_JSON = 200
"""More than the keys, brackets and short values of a chunk, tensor, span or example take, without their content."""
AROUND_PROTOBUF = 48
"""More than the tags and lengths of a chunk, tensor, span or example take, with all their levels."""
AROUND_REQUEST = 512
"""More than the rest of a request takes, without the texts in it."""


class RequestSize(Protocol):
    """Counts the bytes of examples in one form of request."""

    def bound(self, datum: Datum) -> int:
        """Return at least as many bytes as an example takes."""

    def measure(self, datum: Datum) -> int:
        """Return a count that is as close as this form has one, and no lower than the truth."""


class ProtobufSize:
    """The size of examples in a protobuf request."""

    def bound(self, datum: Datum) -> int:
        """Return the bound of the table above."""
        chunks = sum(map(_protobuf_chunk, datum.model_input.chunks))
        tensors = sum(_text(name) + _protobuf_tensor(tensor) for name, tensor in datum.loss_fn_inputs.items())
        spans = (*(datum.model_input_spans or ()), *(datum.loss_fn_input_spans or ()))
        return AROUND_PROTOBUF + chunks + tensors + sum(AROUND_PROTOBUF + _text(span.sequence_id) for span in spans)

    def measure(self, datum: Datum) -> int:
        """Return the bound, which is close."""
        return self.bound(datum)


class JsonSize:
    """The size of examples in a JSON request, which a converter writes."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter

    def bound(self, datum: Datum) -> int:
        """Return the bound of the table above."""
        chunks = sum(map(_json_chunk, datum.model_input.chunks))
        tensors = sum(
            LONGEST_ESCAPE * _text(name) + _json_tensor(tensor) for name, tensor in datum.loss_fn_inputs.items()
        )
        return AROUND_JSON + chunks + tensors

    def measure(self, datum: Datum) -> int:
        """Return the exact count with the comma behind it; 0 for an example that has no JSON form."""
        try:
            return len(self._converter.encode(datum)) + 1
        except (TinkerError, TypeError, ValueError):
            return 0


class LargerSize:
    """The size of examples in a request of which it is not known which of two forms it will have."""

    def __init__(self, *sizes: RequestSize) -> None:
        self._sizes = sizes

    def bound(self, datum: Datum) -> int:
        """Return the larger of the bounds."""
        return max(size.bound(datum) for size in self._sizes)

    def measure(self, datum: Datum) -> int:
        """Return the larger of the counts."""
        return max(size.measure(datum) for size in self._sizes)


def request_size(dialect: Dialect, name: str, data: Iterable[Datum]) -> RequestSize:
    """Return what counts the bytes of a batch in the form, or the forms, in which a call may send it now."""
    json = JsonSize(dialect.converter)
    if name not in dialect.binary and not dialect.is_guess:
        return json
    # Protobuf has no pointers to images.
    has_protobuf_form = not any(
        isinstance(chunk, ImageAssetPointerChunk) for datum in data for chunk in datum.model_input.chunks
    )
    return ProtobufSize() if has_protobuf_form and not dialect.is_guess else LargerSize(json, ProtobufSize())


def size_around(model_id: str, batch: ForwardBackwardInput) -> int:
    """Return at least as many bytes as a request takes in either form, without its examples."""
    config: Mapping[str, float | str] = batch.loss_fn_config or {}
    # Protobuf has each number twice.
    entries = sum(2 * AROUND_PROTOBUF + LONGEST_ESCAPE * (_text(key) + _text(str(config[key]))) for key in config)
    return AROUND_REQUEST + LONGEST_ESCAPE * (_text(model_id) + _text(batch.loss_fn)) + entries


def _protobuf_chunk(chunk: Any) -> int:
    if isinstance(chunk, EncodedTextChunk):
        return AROUND_PROTOBUF + 4 * len(chunk.tokens)
    return AROUND_PROTOBUF + len(_content(chunk)) + _text(_texts(chunk))


def _protobuf_tensor(tensor: TensorData) -> int:
    dimensions = 1 if tensor.shape is None else len(tensor.shape)
    width = 4 if tensor.dtype == "float32" else 8
    return AROUND_PROTOBUF + 10 * dimensions + width * len(tensor.raw) + 8 * indices_in(tensor)


def _json_chunk(chunk: Any) -> int:
    if isinstance(chunk, EncodedTextChunk):
        return AROUND_JSON + LONGEST_INT * len(chunk.tokens)
    return AROUND_JSON + 4 * ((len(_content(chunk)) + 2) // 3) + LONGEST_ESCAPE * _text(_texts(chunk))


def _json_tensor(tensor: TensorData) -> int:
    is_short = isinstance(tensor.raw, np.ndarray) and tensor.raw.dtype == np.dtype("float32")
    # Arrays that orjson cannot take as they lie in memory are written as Python floats.
    width = LONGEST_FLOAT32 if is_short and tensor.raw.flags.c_contiguous else LONGEST_NUMBER
    numbers = indices_in(tensor) + (1 if tensor.shape is None else len(tensor.shape))
    return AROUND_JSON + width * len(tensor.raw) + LONGEST_INT * numbers


def indices_in(tensor: TensorData) -> int:
    """Return how many row and column numbers a tensor has; none unless it is sparse."""
    if tensor.sparse_crow_indices is None or tensor.sparse_col_indices is None:
        return 0
    return len(tensor.sparse_crow_indices) + len(tensor.sparse_col_indices)


def _content(chunk: Any) -> bytes:
    """The bytes that a chunk brings along."""
    if isinstance(chunk, DmelChunk):
        return chunk.dmel
    return chunk.data if isinstance(chunk, ImageChunk) else b""


def _texts(chunk: Any) -> str:
    return f"{getattr(chunk, 'format', '')}{getattr(chunk, 'location', '')}"


def _text(value: str) -> int:
    return len(value.encode(errors="surrogatepass"))
