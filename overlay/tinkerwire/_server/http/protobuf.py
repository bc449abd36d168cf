"""The server's side of protobuf: decodes requests and encodes results."""

from __future__ import annotations

from tinkerwire_base.model import Model
from tinkerwire_generated.models import ForwardBackwardRequest, ForwardRequest
from tinkerwire_generated.protobuf import message_class

from ..._wire.protobuf_forms import REQUEST, message_codec
from ..._wire.protobuf_messages import check_model, parse_message, refuse_absent, serialize_message


def decode_request(data: bytes, version: str | None = None) -> ForwardBackwardRequest | ForwardRequest:
    """Decode a ForwardBackwardRequest message; return a ForwardRequest if it sets forward_only.

    Args:
        data: the message.
        version: the wire version of the server; None for the newest.

    Raises:
        DialectError: the version does not have a field of the message.
        ValueError: the message is invalid, or no model can represent it; the error has the path.
    """
    message = parse_message(REQUEST, data)
    if version is not None:
        refuse_absent(message, version)
    if message.forward_only:
        forward: ForwardRequest = message_codec().read(REQUEST, message, ForwardRequest)
        check_model(forward.forward_input, version)
        return forward
    request: ForwardBackwardRequest = message_codec().read(REQUEST, message, ForwardBackwardRequest)
    check_model(request.forward_backward_input, version)
    return request


def encode_result(result: Model, version: str | None = None) -> bytes:
    """Encode a result as the message of its name.

    Args:
        result: the result.
        version: the wire version of the client; None for the newest.

    Raises:
        DialectError: the version does not have the message or a field of the result.
        ValueError, OverflowError: the message cannot represent a value; the error has the path.
    """
    name = type(result).__name__
    message = message_class(name)()
    message_codec(version, version).write(name, message, result)
    return serialize_message(message, version)
