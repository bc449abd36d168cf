"""First answers by idempotency key, so that a request that is sent twice is done once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from tinkerwire._server.http.responses import conflict
from tinkerwire._server.storage.bounded import BoundedTable, compact
from tinkerwire_base.call import JSON, WireResponse

REPEATABLE = frozenset(
    {
        "auth_token",
        "client_config",
        "client_dynamic_config",
        "get_info",
        "retrieve_future",
        "retrieve_futures",
        "search_sessions",
        "session_heartbeat",
        "telemetry",
        "weights_info",
    }
)
"""Operations that are not GET and change nothing: each time they are asked, they are answered anew."""

JSON_ONLY: Mapping[str, str] = MappingProxyType({"content-type": JSON})
"""The headers that nearly all answers have, shared by those that are kept."""


@attrs.frozen
class _First:
    operation: str
    fingerprint: bytes
    response: WireResponse


class IdempotencyCache:
    """Successful answers by key, the newest. A failed request did nothing and may be redone.

    Args:
        max_bytes: how much memory they may take.
    """

    def __init__(self, max_bytes: int) -> None:
        self.table: BoundedTable[str, _First] = BoundedTable(max_bytes)
        """The answers."""

    def find(self, key: str, operation: str, fingerprint: bytes) -> WireResponse | None:
        """The first answer under a key.

        Raises:
            Refusal: 409 when the key belonged to another request.
        """
        first = self.table.get(key)
        if first is None:
            return None
        if (first.operation, first.fingerprint) != (operation, fingerprint):
            raise conflict(f"idempotency key {key!r} was used by another request; use a fresh one per operation")
        return first.response

    def keep(self, key: str, operation: str, fingerprint: bytes, response: WireResponse) -> None:
        """Keep the answer that a request got."""
        if response.status < 300:
            headers = JSON_ONLY if response.headers == JSON_ONLY else response.headers
            kept = attrs.evolve(response, headers=headers, content=compact(response.content))
            self.table.put(key, _First(operation, fingerprint, kept), len(key) + len(fingerprint) + len(kept.content))
