"""Tests of the contract as the conformance kit reads it."""

from __future__ import annotations

import pytest

from tinkerwire._conformance.client.contract import Contract
from tinkerwire._conformance.exchange import Exchange
from tinkerwire_base.call import PROTOBUF, WireRequest, WireResponse
from tinkerwire_generated.protobuf import message_class


def make_exchange(content: bytes) -> Exchange:
    """Return a poll with a response in protobuf."""
    request = WireRequest(method="POST", path="/api/v1/retrieve_future", headers={})
    response = WireResponse(status=200, headers={"content-type": PROTOBUF}, content=content)
    return Exchange(request, "http://127.0.0.1/api/v1/retrieve_future", response, "", 0.0)


@pytest.mark.parametrize("message", ["SampleResponse", "ForwardBackwardOutput"])
def test_poll_may_return_each_message_of_the_contract(message: str) -> None:
    content = message_class(message)().SerializeToString()
    assert Contract("0.25.0").response_errors("retrieve_future", make_exchange(content)) == []


def test_malformed_protobuf_is_an_error() -> None:
    [error] = Contract("0.25.0").response_errors("retrieve_future", make_exchange(b"\xff\xff\xff"))
    assert "does not parse" in error
