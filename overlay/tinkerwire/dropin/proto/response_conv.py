"""Results from protobuf messages, under the names of the official SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tinkerwire_generated.models import ForwardBackwardOutput, SampleResponse

from ..._wire.protobuf import decode_output as deserialize_forward_backward_output
from ..._wire.protobuf import decode_sample as deserialize_sample_response

__all__ = [
    "PROTO_SUPPORTED_TYPES",
    "deserialize_forward_backward_output",
    "deserialize_proto_response",
    "deserialize_sample_response",
]

_DECODERS: Mapping[type, Callable[[bytes], Any]] = {
    SampleResponse: deserialize_sample_response,
    ForwardBackwardOutput: deserialize_forward_backward_output,
}
PROTO_SUPPORTED_TYPES: set[type] = {*_DECODERS}
"""The results that servers send as protobuf."""


def deserialize_proto_response(proto_bytes: bytes, model_cls: type) -> Any:
    """Return the result of a message. ValueError for a class that has no message, or for bytes that are not one."""
    decode = _DECODERS.get(model_cls)
    if decode is None:
        names = ", ".join(sorted(model.__name__ for model in _DECODERS))
        raise ValueError(f"model_cls: {model_cls!r} has no protobuf message; {names} have one")
    return decode(proto_bytes)
