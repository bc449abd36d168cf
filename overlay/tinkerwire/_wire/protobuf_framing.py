"""Datums as bytes of a protobuf request, in which the numbers are copied only once.

A message copies the bytes of a field when the field is set, and several times when the message is serialized. Numbers
are nearly all of a batch: their fields are written here as tags, lengths and buffers. All other fields go through
messages, as in the rest of the request; parsers merge the parts of a message, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from tinkerwire_generated import models
from tinkerwire_generated.protobuf import message_class

from . import protobuf_tensors as tensors
from .protobuf_fields import MessageCodec
from .protobuf_messages import serialize_message

FRAMED_FIELDS = {
    "ForwardBackwardRequest": ("data",),
    "Datum": ("model_input", "loss_fn_inputs"),
    "EncodedTextChunk": ("tokens",),
}
"""Message to the fields that this module writes; the codec of the other fields omits them."""
LENGTH_DELIMITED = 2
"""The wire type of bytes, texts and messages."""
MAP_KEY, MAP_VALUE = (bytes([number << 3 | LENGTH_DELIMITED]) for number in (1, 2))
"""The tags of the two fields of a map's entry, which protobuf defines."""

Parts = Sequence[Any]
"""Consecutive buffers of bytes: ``bytes``, or one-dimensional arrays whose items are bytes."""


def frame_datum(codec: MessageCodec, place: str, datum: models.Datum) -> Parts:
    """Return the field of a ForwardBackwardRequest message that adds a datum. Errors: see ``encode_request``."""
    parts = [_encode_rest(codec, "Datum", place, datum)]
    for position, chunk in enumerate(datum.model_input.chunks):
        parts += _encode_chunk(codec, f"{place}.model_input.chunks[{position}]", chunk)
    for name in sorted(datum.loss_fn_inputs):
        parts += _encode_tensor(f"{place}.loss_fn_inputs[{name!r}]", name, datum.loss_fn_inputs[name])
    size = sum(map(len, parts))
    return (_tag("ForwardBackwardRequest", "data") + _encode_varint(size), *parts)


def _encode_chunk(codec: MessageCodec, place: str, chunk: Any) -> Parts:
    """Return the field of a Datum that adds a chunk of its input."""
    if not isinstance(chunk, models.EncodedTextChunk):
        return (_frame(_tag("Datum", "model_input"), _encode_rest(codec, "Chunk", place, chunk)),)
    rest = _encode_rest(codec, "EncodedTextChunk", place, chunk)
    tokens = tensors.int32_buffer(f"{place}.tokens", chunk.raw)
    return (_frame_tokens(rest, len(tokens)), tokens)


def _encode_tensor(place: str, name: str, tensor: models.TensorData) -> Parts:
    """Return the field of a Datum that adds a tensor of its loss inputs."""
    if tensor.sparse_crow_indices is None:
        values = tensors.wire_values(place, tensor)
        shape = (len(values),) if tensor.shape is None else tuple(tensor.shape)
        buffer = tensors.buffer_of(values)
        return (_frame_numbers(name, tensor.dtype, shape, len(buffer)), buffer)
    message = message_class("Tensor")()
    tensors.put_tensor(message, place, tensor)
    return (_frame_entry(name, serialize_message(message, None), 0),)


def _encode_rest(codec: MessageCodec, name: str, place: str, model: Any) -> bytes:
    """Return a message of a model without the fields of :data:`FRAMED_FIELDS`."""
    message = message_class(name)()
    codec.form_of(name).write(message, place, model)
    return serialize_message(message, codec.newest)


@lru_cache(1024)
def _frame_tokens(rest: bytes, size: int) -> bytes:
    """Return the field that adds a text to a Datum, without its tokens, which are its last ``size`` bytes."""
    text = rest + _frame(_tag("EncodedTextChunk", "tokens"), b"", size)
    return _frame(_tag("Datum", "model_input"), _frame(_tag("Chunk", "encoded_text"), text, size), size)


@lru_cache(1024)
def _frame_numbers(name: str, dtype: str, shape: tuple[int, ...], size: int) -> bytes:
    """Return the field that adds a dense tensor to a Datum, without its numbers, which are its last ``size`` bytes."""
    head = serialize_message(message_class("Tensor")(dtype=tensors.DTYPE_NUMBERS[dtype], shape=shape), None)
    return _frame_entry(name, head + _frame(_tag("Tensor", "dense"), b"", size), size)


def _frame_entry(name: str, tensor: bytes, size: int) -> bytes:
    """Return the field that adds a tensor to a Datum, without the last ``size`` bytes of the tensor."""
    entry = _frame(MAP_KEY, name.encode()) + _frame(MAP_VALUE, tensor, size)
    return _frame(_tag("Datum", "loss_fn_inputs"), entry, size)


def _frame(tag: bytes, content: bytes, size: int = 0) -> bytes:
    """Return the field of a tag, without the last ``size`` bytes of its content."""
    return tag + _encode_varint(len(content) + size) + content


@lru_cache(1024)
def _encode_varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


@cache
def _tag(name: str, field: str) -> bytes:
    """Return the tag of a field whose values are bytes or messages."""
    number = message_class(name).DESCRIPTOR.fields_by_name[field].number
    return _encode_varint(number << 3 | LENGTH_DELIMITED)
