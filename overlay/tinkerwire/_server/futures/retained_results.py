"""Results of finished work, kept until clients have fetched them, within limits of age and memory."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from tinkerwire._server.bounded_table import BoundedTable
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
    def content_bytes(self) -> int:
        """Memory of the content of this result, and of the completion of a sample."""
        return len(self.result.content) + (0 if self.on_dropped is None else COMPLETION_BYTES)


class RetainedResults:
    """Results by request id. Fetched results are dropped before others; the newest of each kind is always kept.

    Not thread safe: callers hold a lock.

    Args:
        policy: limits of age and memory.
        clock: seconds since the epoch.
        on_dropped: receives the request id of each dropped result.
    """

    def __init__(
        self,
        policy: RetentionPolicy,
        clock: Callable[[], float],
        on_dropped: Callable[[str], None] = lambda request_id: None,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._on_dropped = on_dropped
        self._unfetched: BoundedTable[str, RetainedResult] = BoundedTable(policy.unfetched_bytes, self._report_dropped)
        # Only for clients that lost a response, therefore on disk.
        self._fetched: BoundedTable[str, RetainedResult] = BoundedTable(
            policy.fetched_bytes, self._report_dropped, _forget_completion
        )

    def __len__(self) -> int:
        return len(self._unfetched) + len(self._fetched)

    @property
    def size_bytes(self) -> int:
        """Memory of all results."""
        return self._unfetched.size_bytes + self._fetched.size_bytes

    def add(self, request_id: str, retained: RetainedResult) -> None:
        """Keep a result that was not fetched yet."""
        self._unfetched.put(request_id, retained, retained.content_bytes)
        self._drop_excess()

    def get(self, request_id: str) -> RetainedResult | None:
        """Return a result; None if it does not exist or was dropped."""
        for table in (self._unfetched, self._fetched):
            retained = table.get(request_id)
            if retained is not None and not self._is_expired(retained):
                return retained
            if retained is not None:
                table.drop(request_id)
        return None

    def mark_fetched(self, request_id: str) -> bool:
        """Mark a result as sent, so that it is dropped before unfetched results; return whether this is new."""
        retained = self._unfetched.pop(request_id)
        if retained is None:
            return False
        self._fetched.put(request_id, retained, retained.content_bytes)
        self._drop_excess()
        return True

    def _drop_excess(self) -> None:
        for table in (self._fetched, self._unfetched):
            while (oldest := table.read_oldest()) is not None and self._is_expired(oldest[1]):
                table.drop(oldest[0])
        while len(self) > self._policy.results:
            table = self._fetched if len(self._fetched) else self._unfetched
            table.drop_oldest()

    def _is_expired(self, retained: RetainedResult) -> bool:
        return retained.finished_at <= self._clock() - self._policy.seconds

    def _report_dropped(self, request_id: str, retained: RetainedResult) -> None:
        self._on_dropped(request_id)
        if retained.on_dropped is not None:
            retained.on_dropped(request_id)


def _forget_completion(request_id: str, retained: RetainedResult) -> RetainedResult:
    """Remove the completion of a sample whose result its client has, and return the result without it."""
    if retained.on_dropped is not None:
        retained.on_dropped(request_id)
    return attrs.evolve(retained, on_dropped=None)
