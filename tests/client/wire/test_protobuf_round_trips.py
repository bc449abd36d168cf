"""Tests that every model with a protobuf form survives a round trip."""

from __future__ import annotations

from hypothesis import given

from support.protobuf_models import FORWARD_REQUESTS, REQUESTS, outputs, samples, to_plain
from tinkerwire._server.http.protobuf import decode_request, encode_output, encode_sample
from tinkerwire._wire.protobuf import decode_output, decode_sample, encode_request
from tinkerwire_generated import models as m


@given(REQUESTS | FORWARD_REQUESTS)
def test_requests_survive_round_trip(request: m.ForwardBackwardRequest | m.ForwardRequest) -> None:
    """The requests have dense and sparse tensors, and every chunk that has a protobuf form."""
    assert to_plain(decode_request(encode_request(request))) == to_plain(request)


@given(outputs())
def test_outputs_survive_round_trip(output: m.ForwardBackwardOutput) -> None:
    """The outputs include datums that do not fit into one record."""
    assert to_plain(decode_output(encode_output(output))) == to_plain(output)


@given(samples())
def test_samples_survive_round_trip(sample: m.SampleResponse) -> None:
    """The samples have all fields, also those that only protobuf has."""
    assert to_plain(decode_sample(encode_sample(sample))) == to_plain(sample)
