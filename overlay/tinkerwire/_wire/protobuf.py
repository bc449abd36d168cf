"""Requests to protobuf, and results from protobuf, with the same models as JSON.

Fields that the contract does not know are dropped.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from tinkerwire_generated import models
from tinkerwire_generated.protobuf import message_class

from .protobuf_fields import MessageCodec
from .protobuf_forms import REQUEST, TABLES, message_codec
from .protobuf_framing import FRAMED_FIELDS, frame_datum
from .protobuf_messages import parse_message, serialize_message

T = TypeVar("T")


def encode_request(
    request: models.ForwardBackwardRequest | models.ForwardRequest, version: str | None = None, floor: str | None = None
) -> bytes:
    """Return the ForwardBackwardRequest message of a request; for a ForwardRequest, one that is forward_only.

    A ``seq_id`` of None is sent as 0, the default of the message.

    Args:
        request: what to send.
        version: the wire version of the server; None for the newest.
        floor: the oldest possible version, if only a range is known; ``version`` is then the newest.

    Raises:
        DialectError: the version lacks the message or a set field.
        OverflowError: a token id or seq_id beyond 32 bits, or a value beyond float32; with its place.
        ValueError, TypeError: a value without a protobuf form, such as an asset pointer; with its place.
    """
    batch = request.forward_input if isinstance(request, models.ForwardRequest) else request.forward_backward_input
    codec = _datumless_codec(floor or version, version)
    message = message_class(REQUEST)(forward_only=isinstance(request, models.ForwardRequest))
    codec.write(REQUEST, message, request)
    parts: list[Any] = [serialize_message(message, version)]
    for position, datum in enumerate(batch.data):
        parts += frame_datum(codec, f"data[{position}]", datum)
    return b"".join(parts)


@cache
def _datumless_codec(oldest: str | None, newest: str | None) -> MessageCodec:
    return MessageCodec(TABLES, oldest, newest, FRAMED_FIELDS)


def decode_result(data: bytes, model: type[T]) -> T:
    """Return the result of the message with the name of a model.

    Raises:
        ValueError: the message is malformed; the error has the path.
    """
    return message_codec().read(model.__name__, parse_message(model.__name__, data), model)


def decode_output(data: bytes) -> models.ForwardBackwardOutput:
    """Return the result of a ForwardBackwardOutput message; raise ValueError with the path if it is malformed."""
    return decode_result(data, models.ForwardBackwardOutput)


def decode_sample(data: bytes) -> models.SampleResponse:
    """Return the result of a SampleResponse message; raise ValueError with the path if it is malformed."""
    return decode_result(data, models.SampleResponse)
