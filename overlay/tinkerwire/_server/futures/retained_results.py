"""Retained results: results of finished work, within limits of age and memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import attrs

from tinkerwire._server.bounded_table import ENTRY_BYTES
from tinkerwire._server.futures.retention_policy import RetentionPolicy
from tinkerwire._server.http.encoding import EncodedResult

COMPLETION_BYTES = 384
"""Memory of the completion of a sample, which exists as long as its result."""


@attrs.frozen(kw_only=True)
class RetainedResult:
    """A retained result.

    Args:
        result: the result.
        model_id: the model that the work belongs to, if any.
        finished_at: seconds since the epoch.
        on_dropped: function to call with the request id once the result is dropped, if any.
    """

    result: EncodedResult
    model_id: str | None
    finished_at: float
    on_dropped: Callable[[str], None] | None

    @property
    def size_bytes(self) -> int:
        """Memory of this result."""
        completion = 0 if self.on_dropped is None else COMPLETION_BYTES
        return ENTRY_BYTES + completion + len(self.result.content)


class RetainedResults:
    """Results by request id. Fetched results are dropped before others; the newest of each kind is always kept.

    Not thread safe: callers hold a lock.

    Args:
        policy: limits of age and memory.
        clock: seconds since the epoch.
    """

    def __init__(self, policy: RetentionPolicy, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._unfetched: OrderedDict[str, RetainedResult] = OrderedDict()
        self._fetched: OrderedDict[str, RetainedResult] = OrderedDict()
        self._unfetched_bytes = 0
        self._fetched_bytes = 0

    def __len__(self) -> int:
        return len(self._unfetched) + len(self._fetched)

    @property
    def size_bytes(self) -> int:
        """Memory of all results."""
        return self._unfetched_bytes + self._fetched_bytes

    def add(self, request_id: str, retained: RetainedResult) -> None:
        """Keep a result that was not fetched yet."""
        self._unfetched[request_id] = retained
        self._unfetched_bytes += retained.size_bytes
        self._drop_excess()

    def get(self, request_id: str) -> RetainedResult | None:
        """Return a result; None if it does not exist or was dropped."""
        retained = self._unfetched.get(request_id) or self._fetched.get(request_id)
        if retained is not None and self._is_expired(retained):
            self._drop(request_id)
            return None
        return retained

    def mark_fetched(self, request_id: str) -> None:
        """Record that a result was sent, so that it is dropped before unfetched results."""
        retained = self._unfetched.pop(request_id, None)
        if retained is None:
            return
        self._unfetched_bytes -= retained.size_bytes
        self._fetched[request_id] = retained
        self._fetched_bytes += retained.size_bytes
        self._drop_excess()

    def _drop_excess(self) -> None:
        for table in (self._fetched, self._unfetched):
            while table and self._is_expired(next(iter(table.values()))):
                self._drop(next(iter(table)))
        while self._fetched_bytes > self._policy.fetched_bytes and len(self._fetched) > 1:
            self._drop(next(iter(self._fetched)))
        while self._unfetched_bytes > self._policy.unfetched_bytes and len(self._unfetched) > 1:
            self._drop(next(iter(self._unfetched)))
        while len(self) > self._policy.results:
            self._drop(next(iter(self._fetched or self._unfetched)))

    def _is_expired(self, retained: RetainedResult) -> bool:
        return retained.finished_at <= self._clock() - self._policy.seconds

    def _drop(self, request_id: str) -> None:
        retained = self._fetched.pop(request_id, None)
        if retained is not None:
            self._fetched_bytes -= retained.size_bytes
        else:
            retained = self._unfetched.pop(request_id)
            self._unfetched_bytes -= retained.size_bytes
        if retained.on_dropped is not None:
            retained.on_dropped(request_id)
