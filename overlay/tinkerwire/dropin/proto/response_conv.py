"""Results from protobuf messages, under the names of the official SDK."""

from __future__ import annotations

from typing import Any

from tinkerwire_generated.models import ForwardBackwardOutput, SampleResponse

from ..._wire.protobuf import decode_output as deserialize_forward_backward_output
from ..._wire.protobuf import decode_result
from ..._wire.protobuf import decode_sample as deserialize_sample_response

__all__ = [
    "PROTO_SUPPORTED_TYPES",
    "deserialize_forward_backward_output",
    "deserialize_proto_response",
    "deserialize_sample_response",
]

PROTO_SUPPORTED_TYPES: set[type] = {SampleResponse, ForwardBackwardOutput}
"""The results that servers send as protobuf."""


def deserialize_proto_response(proto_bytes: bytes, model_cls: type) -> Any:
    """Return the result of a message. ValueError for a class that has no message, or for bytes that are not one."""
    if model_cls not in PROTO_SUPPORTED_TYPES:
        known = ", ".join(sorted(kind.__name__ for kind in PROTO_SUPPORTED_TYPES))
        raise ValueError(f"model_cls: {model_cls!r} has no protobuf message; {known} have one")
    return decode_result(proto_bytes, model_cls)
