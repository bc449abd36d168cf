"""Requests as they arrive, and as handlers get them: routed and validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tinkerwire_base.call import WireRequest


@attrs.frozen(kw_only=True)
class Request:
    """A request that fits the contract.

    Args:
        operation: name of the operation.
        path: decoded values of the path parameters.
        query: converted values of all query parameters, with defaults.
        body: the generated request model, or None.
        headers: headers by lower-case name.
        key: the idempotency key, if any.
        fingerprint: hash of the bytes and the endpoint; equal for equal requests.
    """

    operation: str
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    headers: Mapping[str, str]
    key: str | None
    fingerprint: bytes


def with_lower_names(request: WireRequest) -> WireRequest:
    """Return a request whose headers have lower-case names."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    return request if headers.keys() == request.headers.keys() else attrs.evolve(request, headers=headers)
