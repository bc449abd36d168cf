"""Tests that every model with a protobuf form survives a round trip."""

from __future__ import annotations

from hypothesis import given

from support.protobuf_models import FORWARD_REQUESTS, REQUESTS, outputs, samples, to_plain
from tinkerwire._server.http.protobuf import decode_request, encode_result
from tinkerwire._wire.protobuf import decode_output, decode_sample, encode_request
from tinkerwire._wire.protobuf_forms import REQUEST, TABLES, message_codec
from tinkerwire_generated import models as m
from tinkerwire_generated.protobuf import MESSAGE_FIELDS, message_class


@given(REQUESTS | FORWARD_REQUESTS)
def test_requests_survive_round_trip(request: m.ForwardBackwardRequest | m.ForwardRequest) -> None:
    """The requests have dense and sparse tensors, and every chunk that has a protobuf form."""
    assert to_plain(decode_request(encode_request(request))) == to_plain(request)


@given(REQUESTS | FORWARD_REQUESTS)
def test_framed_request_equals_message(request: m.ForwardBackwardRequest | m.ForwardRequest) -> None:
    """The client frames numbers itself; a parser sees the message that protobuf would have serialized."""
    kind = message_class(REQUEST)
    message = kind(forward_only=isinstance(request, m.ForwardRequest))
    message_codec().write(REQUEST, message, request)
    framed = kind.FromString(encode_request(request))
    assert framed == message
    assert framed.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


@given(outputs())
def test_outputs_survive_round_trip(output: m.ForwardBackwardOutput) -> None:
    """The outputs include datums that do not fit into one record."""
    assert to_plain(decode_output(encode_result(output))) == to_plain(output)


@given(samples())
def test_samples_survive_round_trip(sample: m.SampleResponse) -> None:
    """The samples have all fields, also those that only protobuf has."""
    assert to_plain(decode_sample(encode_result(sample))) == to_plain(sample)


def test_every_message_field_has_a_model_field() -> None:
    """A field that only the .proto has would be dropped."""
    merged = {"ForwardBackwardRequest": ("ForwardBackwardRequest", "ForwardBackwardInput")}
    missing = set()
    for message, fields in MESSAGE_FIELDS.items():
        kinds = [getattr(m, name, None) for name in merged.get(message, (message,))]
        attributes = {a.alias for kind in kinds if isinstance(kind, type) for a in kind.__attrs_attrs__}
        names = {TABLES.names.get(message, {}).get(str(name), str(name)) for name in attributes}
        missing |= {f"{message}.{field}" for field in fields if attributes and field not in names}
    assert {name for name in missing if not name.startswith("SamplingParams.")} == {
        "ForwardBackwardRequest.forward_only",
        "ForwardBackwardRequest.loss_fn_config_v2",
        "ImageChunk.override_dimensions",
    }
