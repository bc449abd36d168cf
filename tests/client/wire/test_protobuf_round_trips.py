"""Every model that has a binary form comes back from it as it was."""

from __future__ import annotations

from hypothesis import given

from support.protobuf_models import FORWARD_REQUESTS, REQUESTS, outputs, plain, samples
from tinkerwire._server.http import protobuf as served
from tinkerwire._wire import protobuf
from tinkerwire_generated import models as m


@given(REQUESTS | FORWARD_REQUESTS)
def test_requests(request: m.ForwardBackwardRequest | m.ForwardRequest) -> None:
    """Requests, dense and sparse, with every chunk that has a binary form."""
    assert plain(served.decode_request(protobuf.encode_request(request))) == plain(request)


@given(outputs())
def test_outputs(output: m.ForwardBackwardOutput) -> None:
    """Results of losses, also of datums that fit into no one record."""
    assert plain(protobuf.decode_output(served.encode_output(output))) == plain(output)


@given(samples())
def test_samples(sample: m.SampleResponse) -> None:
    """Results of sampling, with all that only binary messages have."""
    assert plain(protobuf.decode_sample(served.encode_sample(sample))) == plain(sample)
