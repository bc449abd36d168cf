"""Requests that schemathesis makes from the contract."""

from __future__ import annotations

import jsonschema_rs
import pytest

from tinkerwire._conformance.client.contract import Contract
from tinkerwire._conformance.schema_requests.generated_requests import generate_requests, limit_cost

pytest.importorskip("schemathesis")


def test_requests_fit_the_contract_and_repeat() -> None:
    """Requests fit the schema, and two runs make the same ones."""
    contract = Contract("0.38.0")
    method, path = contract.locate("create_model")
    first, second = (generate_requests(contract.document, method, path, 8) for _ in range(2))
    assert first == second
    assert len(first) == 8
    schema = {**(contract.request_schema("create_model") or {}), "components": contract.document["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert all(validator.is_valid(request.body) for request in first)


def test_cost_is_limited() -> None:
    """Large numbers of tokens, samples and ranks become small, at any depth."""
    body = {"sampling_params": {"max_tokens": 10**9}, "num_samples": 1000, "items": [{"rank": 4096}], "seed": 10**9}
    assert limit_cost(body) == {
        "sampling_params": {"max_tokens": 8},
        "num_samples": 2,
        "items": [{"rank": 4}],
        "seed": 10**9,
    }
