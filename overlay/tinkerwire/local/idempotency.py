"""First answers by idempotency key, so that a request that is sent twice is done once."""

from __future__ import annotations

from collections import OrderedDict

import attrs

from tinkerwire.local.answers import conflict
from tinkerwire_base.call import WireResponse

MOST_REMEMBERED = 20_000

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


@attrs.frozen
class _First:
    operation: str
    fingerprint: bytes
    response: WireResponse


class FirstAnswers:
    """Successful answers by key, the newest :data:`MOST_REMEMBERED`. A failed request did nothing and may be redone."""

    def __init__(self) -> None:
        self._first: OrderedDict[str, _First] = OrderedDict()

    def find(self, key: str, operation: str, fingerprint: bytes) -> WireResponse | None:
        """The first answer under a key.

        Raises:
            Refusal: 409 when the key belonged to another request.
        """
        first = self._first.get(key)
        if first is None:
            return None
        if (first.operation, first.fingerprint) != (operation, fingerprint):
            raise conflict(f"idempotency key {key!r} was used by another request; use a fresh one per operation")
        return first.response

    def keep(self, key: str, operation: str, fingerprint: bytes, response: WireResponse) -> None:
        """Remember the answer that a request got."""
        if response.status < 300:
            self._first[key] = _First(operation, fingerprint, response)
            if len(self._first) > MOST_REMEMBERED:
                self._first.popitem(last=False)
