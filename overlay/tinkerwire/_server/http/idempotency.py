"""Responses by idempotency key, so that a resent request is executed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs

from tinkerwire._server.bounded_table import BoundedTable, compact
from tinkerwire._server.http.responses import conflict_error
from tinkerwire_base.call import JSON, WireResponse

SAFE_OPERATIONS = frozenset(
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
"""Operations that do not use GET but change nothing: every request gets a new response."""

JSON_HEADERS: Mapping[str, str] = MappingProxyType({"content-type": JSON})
"""The headers of nearly all responses, shared by all cached responses."""


@attrs.frozen
class _Entry:
    operation: str
    fingerprint: bytes
    response: WireResponse


class IdempotencyCache:
    """The newest successful responses by key. A failed request changed nothing and may be executed again.

    Args:
        max_bytes: maximum memory of all responses.
        on_stored: receives key, operation, fingerprint, status, headers and content of each new response.
        on_dropped: receives the key of each response that is dropped.
    """

    def __init__(
        self,
        max_bytes: int,
        on_stored: Callable[[str, str, bytes, int, Mapping[str, str], bytes], object] = lambda *values: None,
        on_dropped: Callable[[str], object] = lambda key: None,
    ) -> None:
        self._on_stored = on_stored
        self.table: BoundedTable[str, _Entry] = BoundedTable(
            max_bytes, lambda key, _: on_dropped(key), lambda key, entry: _to_archive(entry)
        )
        """The responses by key."""

    def find(self, key: str, operation: str, fingerprint: bytes) -> WireResponse | None:
        """Return the response to the first request with a key, or None.

        Raises:
            HttpError: 409 if another request used the key.
        """
        entry = self.table.get(key)
        if entry is None:
            return None
        if (entry.operation, entry.fingerprint) != (operation, fingerprint):
            raise conflict_error(f"another request used the idempotency key {key!r}; use a new key for each operation")
        return entry.response

    def store(self, key: str, operation: str, fingerprint: bytes, response: WireResponse) -> None:
        """Keep the response to a request if it is a success."""
        if response.status < 300:
            self._on_stored(key, operation, fingerprint, response.status, response.headers, response.content)
            self.restore(key, operation, fingerprint, response)

    def restore(self, key: str, operation: str, fingerprint: bytes, response: WireResponse) -> None:
        """Keep a response that was stored before."""
        headers = JSON_HEADERS if response.headers == JSON_HEADERS else response.headers
        stored = attrs.evolve(response, headers=headers, content=compact(response.content))
        size = len(key) + len(fingerprint) + len(stored.content)
        self.table.put(key, _Entry(operation, fingerprint, stored), size)


def _to_archive(entry: _Entry) -> _Entry:
    """Return an entry that pickle accepts."""
    response = attrs.evolve(entry.response, headers=dict(entry.response.headers))
    return attrs.evolve(entry, response=response)
