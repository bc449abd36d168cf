"""Every model that has a binary form comes back from it as it was."""

from __future__ import annotations

from hypothesis import given

from support.binary_models import FORWARD_REQUESTS, REQUESTS, outputs, plain, samples
from tinkerwire.local import binary as served
from tinkerwire.wire import binary
from tinkerwire_generated import models as m


@given(REQUESTS | FORWARD_REQUESTS)
def test_requests(request: m.ForwardBackwardRequest | m.ForwardRequest) -> None:
    """Requests, dense and sparse, with every chunk that has a binary form."""
    assert plain(served.decode_request(binary.encode_request(request))) == plain(request)


@given(outputs())
def test_outputs(output: m.ForwardBackwardOutput) -> None:
    """Results of losses, also of datums that fit into no one record."""
    assert plain(binary.decode_output(served.encode_output(output))) == plain(output)


@given(samples())
def test_samples(sample: m.SampleResponse) -> None:
    """Results of sampling, with all that only binary messages have."""
    assert plain(binary.decode_sample(served.encode_sample(sample))) == plain(sample)
