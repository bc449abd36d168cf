"""Requests that the links of the contract describe."""

from __future__ import annotations

import json

from tinkerwire._conformance.client.contract import Contract
from tinkerwire._conformance.exchange import Exchange
from tinkerwire._conformance.schema_requests.links import next_steps
from tinkerwire_base.call import WireRequest, WireResponse


def _exchange(body: object) -> Exchange:
    request = WireRequest(method="POST", path="/", headers={})
    headers = {"content-type": "application/json"}
    return Exchange(request, "/", WireResponse(status=200, headers=headers, content=json.dumps(body).encode()), "", 0.0)


def test_link_takes_its_values_from_the_response() -> None:
    """The id of a new session leads to requests with it, in the body or in the path."""
    steps = list(next_steps(Contract("0.38.0"), "create_session", _exchange({"session_id": "s"})))
    found = {step.operation: {**step.body, **step.parameters} for step in steps}
    assert found["create_model"] == found["get_session"] == {"session_id": "s"}


def test_link_without_value_leads_nowhere() -> None:
    """The result of a save has a path and no model, so that only links with a path are followed."""
    steps = list(next_steps(Contract("0.38.0"), "retrieve_future", _exchange({"path": "tinker://a/weights/b"})))
    assert {step.operation for step in steps} == {"load_weights", "weights_info", "create_sampling_session"}
