"""Requests as protobuf messages, under the name of the official SDK."""

from __future__ import annotations

from typing import Any

from tinkerwire_generated.models import ForwardBackwardRequest, ForwardRequest

from ..._wire.protobuf import encode_request
from ..._wire.protobuf_messages import parse_message

__all__ = ["forward_backward_request_to_proto"]


def forward_backward_request_to_proto(request: ForwardBackwardRequest | ForwardRequest) -> Any:
    """Return the ForwardBackwardRequest message of a request.

    Raises:
        DialectError, OverflowError, ValueError: the message cannot hold something in the request.
    """
    return parse_message("ForwardBackwardRequest", encode_request(request))
