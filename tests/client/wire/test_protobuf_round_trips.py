"""Tests that every model with a protobuf form survives a round trip."""

from __future__ import annotations

from hypothesis import given

from support.protobuf_models import FORWARD_REQUESTS, REQUESTS, outputs, plain, samples
from tinkerwire._server.http import protobuf as served
from tinkerwire._wire import protobuf
from tinkerwire_generated import models as m


@given(REQUESTS | FORWARD_REQUESTS)
def test_requests(request: m.ForwardBackwardRequest | m.ForwardRequest) -> None:
    """Requests are dense and sparse, with every chunk that has a protobuf form."""
    assert plain(served.decode_request(protobuf.encode_request(request))) == plain(request)


@given(outputs())
def test_outputs(output: m.ForwardBackwardOutput) -> None:
    """Outputs include datums that do not fit into one record."""
    assert plain(protobuf.decode_output(served.encode_output(output))) == plain(output)


@given(samples())
def test_samples(sample: m.SampleResponse) -> None:
    """Samples have all fields that only protobuf has."""
    assert plain(protobuf.decode_sample(served.encode_sample(sample))) == plain(sample)
