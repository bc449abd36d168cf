"""Requests that schemathesis makes from the contract: valid in form, with unusual values."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import attrs

from ..._extras import require_packages
from ..._server.http.openapi import Document

GENERATION_SEED = 20
"""Seed of all requests: two runs with the same packages send the same ones."""
COST_LIMITS = {"max_tokens": 8, "num_samples": 2, "rank": 4}
"""Largest values of fields that make a server work or remember more: the run must not load it."""
MAX_BODY_DEPTH = 40


@attrs.frozen
class GeneratedRequest:
    """One request in its parts; ``body`` is None if it has none."""

    path_parameters: Mapping[str, Any]
    query: Mapping[str, Any]
    body: Any


def generate_requests(document: Document, method: str, path: str, count: int) -> list[GeneratedRequest]:
    """Return requests to one operation that fit the contract.

    Args:
        document: the contract of one wire version.
        method: method of the operation.
        path: its path in the contract, with braces.
        count: number of requests.

    Raises:
        MissingPackageError: the extra ``conformance`` is not installed.
    """
    require_packages("The test of generated requests", "conformance", "schemathesis", "hypothesis")
    import schemathesis.openapi  # noqa: PLC0415
    from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: PLC0415

    requests: list[GeneratedRequest] = []
    # schemathesis changes the document that it reads.
    operation = schemathesis.openapi.from_dict(copy.deepcopy(document))[path][method]

    @seed(GENERATION_SEED)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(case=operation.as_strategy())
    def collect(case: Any) -> None:
        body = None if case.media_type is None else limit_cost(case.body)
        requests.append(GeneratedRequest(case.path_parameters or {}, case.query or {}, body))

    collect()
    return requests


def limit_cost(value: Any, depth: int = 0) -> Any:
    """Return a body whose values ask for little work."""
    if depth > MAX_BODY_DEPTH:
        return None
    if isinstance(value, dict):
        limited = {name: limit_cost(item, depth + 1) for name, item in value.items()}
        for name, limit in COST_LIMITS.items():
            if isinstance(limited.get(name), int | float):
                limited[name] = min(limited[name], limit)
        return limited
    if isinstance(value, list):
        return [limit_cost(item, depth + 1) for item in value]
    return value
