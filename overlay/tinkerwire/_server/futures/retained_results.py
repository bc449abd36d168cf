"""Results that are there, for as long as memory and time allow."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import attrs

from tinkerwire._server.http.encoding import Result
from tinkerwire._server.settings import RetentionPolicy
from tinkerwire._server.storage.bounded import ENTRY_BYTES

FOLLOWED_BYTES = 384
"""Bytes of the completion of a sample, which lives as long as its result."""


@attrs.frozen(kw_only=True)
class RetainedResult:
    """A result in the store.

    Args:
        on_gone: called with the request id once the result is dropped; what it refers to is dropped with it.
    """

    result: Result
    model_id: str | None
    finished_at: float
    on_gone: Callable[[str], None] | None

    @property
    def size_bytes(self) -> int:
        """Bytes that it takes."""
        followed = 0 if self.on_gone is None else FOLLOWED_BYTES
        return ENTRY_BYTES + followed + len(self.result.content)


class RetainedResults:
    """Results by request id. Those that were fetched are dropped before others; the newest of each is always kept.

    Not for several threads: callers hold a lock.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, retention: RetentionPolicy, clock: Callable[[], float]) -> None:
        self._retention = retention
        self._clock = clock
        self._unfetched: OrderedDict[str, RetainedResult] = OrderedDict()
        self._fetched: OrderedDict[str, RetainedResult] = OrderedDict()
        self._unfetched_bytes = 0
        self._fetched_bytes = 0

    def __len__(self) -> int:
        return len(self._unfetched) + len(self._fetched)

    @property
    def size_bytes(self) -> int:
        """Bytes that all of them take."""
        return self._unfetched_bytes + self._fetched_bytes

    def add(self, request_id: str, kept: RetainedResult) -> None:
        """Keep a result that was not fetched yet."""
        self._unfetched[request_id] = kept
        self._unfetched_bytes += kept.size_bytes
        self._drop_excess()

    def get(self, request_id: str) -> RetainedResult | None:
        """Return a result; None when there is none, or none any more."""
        kept = self._unfetched.get(request_id) or self._fetched.get(request_id)
        if kept is not None and self._is_old(kept):
            self._drop(request_id)
            return None
        return kept

    def mark_fetched(self, request_id: str) -> None:
        """Note that a result was sent, so that it is dropped before others."""
        kept = self._unfetched.pop(request_id, None)
        if kept is None:
            return
        self._unfetched_bytes -= kept.size_bytes
        self._fetched[request_id] = kept
        self._fetched_bytes += kept.size_bytes
        self._drop_excess()

    def _drop_excess(self) -> None:
        for table in (self._fetched, self._unfetched):
            while table and self._is_old(next(iter(table.values()))):
                self._drop(next(iter(table)))
        while self._fetched_bytes > self._retention.fetched_bytes and len(self._fetched) > 1:
            self._drop(next(iter(self._fetched)))
        while self._unfetched_bytes > self._retention.unfetched_bytes and len(self._unfetched) > 1:
            self._drop(next(iter(self._unfetched)))
        while len(self) > self._retention.results:
            self._drop(next(iter(self._fetched or self._unfetched)))

    def _is_old(self, kept: RetainedResult) -> bool:
        return kept.finished_at <= self._clock() - self._retention.seconds

    def _drop(self, request_id: str) -> None:
        kept = self._fetched.pop(request_id, None)
        if kept is not None:
            self._fetched_bytes -= kept.size_bytes
        else:
            kept = self._unfetched.pop(request_id)
            self._unfetched_bytes -= kept.size_bytes
        if kept.on_gone is not None:
            kept.on_gone(request_id)
