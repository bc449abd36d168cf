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
        content = _encode_chunk(codec, f"{place}.model_input.chunks[{position}]", chunk)
        parts += _frame(_tag("Datum", "model_input"), *content)
    for name in sorted(datum.loss_fn_inputs):
        tensor = _encode_tensor(f"{place}.loss_fn_inputs[{name!r}]", datum.loss_fn_inputs[name])
        entry = (*_frame(MAP_KEY, name.encode()), *_frame(MAP_VALUE, *tensor))
        parts += _frame(_tag("Datum", "loss_fn_inputs"), *entry)
    return _frame(_tag("ForwardBackwardRequest", "data"), *parts)


def _encode_chunk(codec: MessageCodec, place: str, chunk: Any) -> Parts:
    if not isinstance(chunk, models.EncodedTextChunk):
        return (_encode_rest(codec, "Chunk", place, chunk),)
    rest = _encode_rest(codec, "EncodedTextChunk", place, chunk)
    tokens = tensors.int32_buffer(f"{place}.tokens", chunk.raw)
    return _frame(_tag("Chunk", "encoded_text"), rest, *_frame(_tag("EncodedTextChunk", "tokens"), tokens))


def _encode_tensor(place: str, tensor: models.TensorData) -> Parts:
    if tensor.sparse_crow_indices is None:
        values = tensors.wire_values(place, tensor)
        shape = (len(values),) if tensor.shape is None else tuple(tensor.shape)
        return (_encode_shape(tensor.dtype, shape), *_frame(_tag("Tensor", "dense"), tensors.buffer_of(values)))
    message = message_class("Tensor")()
    tensors.put_tensor(message, place, tensor)
    return (serialize_message(message, None),)


def _encode_rest(codec: MessageCodec, name: str, place: str, model: Any) -> bytes:
    """Return a message of a model without the fields of :data:`FRAMED_FIELDS`."""
    message = message_class(name)()
    codec.form_of(name).write(message, place, model)
    return serialize_message(message, codec.newest)


@lru_cache(1024)
def _encode_shape(dtype: str, shape: tuple[int, ...]) -> bytes:
    return serialize_message(message_class("Tensor")(dtype=tensors.DTYPE_NUMBERS[dtype], shape=shape), None)


def _frame(tag: bytes, *parts: Any) -> Parts:
    """Return the field of a tag whose content is the parts."""
    return (tag + _encode_varint(sum(map(len, parts))), *parts)


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
