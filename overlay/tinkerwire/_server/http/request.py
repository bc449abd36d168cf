"""A request once it is routed and validated: what handlers are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class Request:
    """A request that fits the contract.

    Args:
        operation: name of the endpoint.
        path: values of the path's parameters, decoded.
        query: values of all query parameters, converted, defaults filled in.
        body: the generated request model, or None.
        headers: by lower-case name.
        key: the idempotency key, if one was sent.
        fingerprint: the same for the same bytes sent to the same endpoint.
    """

    operation: str
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    headers: Mapping[str, str]
    key: str | None
    fingerprint: bytes
