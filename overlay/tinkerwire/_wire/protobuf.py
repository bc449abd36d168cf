"""Requests to protobuf, and results from protobuf, with the same models as JSON.

Fields that the contract does not know are dropped.
"""

from __future__ import annotations

from typing import TypeVar

from tinkerwire_generated import models
from tinkerwire_generated.protobuf import message_class

from .protobuf_forms import REQUEST, message_codec
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
    message = message_class(REQUEST)(forward_only=isinstance(request, models.ForwardRequest))
    message_codec(floor or version, version).write(REQUEST, message, request)
    return serialize_message(message, version)


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
