"""The store of futures: runs queued work on workers and keeps the results to be fetched."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

import attrs
import numpy as np

from tinkerwire._server.bounded_table import BoundedTable, compact
from tinkerwire._server.engine import EngineError
from tinkerwire._server.futures.cross_loop_event import CrossLoopEvent
from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._server.futures.retention_policy import RetentionPolicy
from tinkerwire._server.http.encoding import EncodedResult, ResultEncoder
from tinkerwire._server.http.responses import HttpError
from tinkerwire_base.errors import DialectError
from tinkerwire_generated.models import RequestFailedResponse

log = logging.getLogger("tinkerwire._server")

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
    """

    def __init__(self, policy: RetentionPolicy, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._unfetched: BoundedTable[str, RetainedResult] = BoundedTable(policy.unfetched_bytes, _report_dropped)
        self._fetched: BoundedTable[str, RetainedResult] = BoundedTable(policy.fetched_bytes, _report_dropped)

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

    def mark_fetched(self, request_id: str) -> None:
        """Record that a result was sent, so that it is dropped before unfetched results."""
        retained = self._unfetched.pop(request_id)
        if retained is not None:
            self._fetched.put(request_id, retained, retained.content_bytes)
            self._drop_excess()

    def _drop_excess(self) -> None:
        for table in (self._fetched, self._unfetched):
            while len(table) and self._is_expired(next(table.values())):
                table.drop(next(iter(table)))
        while len(self) > self._policy.results:
            table = self._fetched if len(self._fetched) else self._unfetched
            table.drop(next(iter(table)))

    def _is_expired(self, retained: RetainedResult) -> bool:
        return retained.finished_at <= self._clock() - self._policy.seconds


def _report_dropped(request_id: str, retained: RetainedResult) -> None:
    if retained.on_dropped is not None:
        retained.on_dropped(request_id)


class ResultListener(Protocol):
    """A listener for results; called from any thread."""

    def on_finished(self, request_id: str, result: EncodedResult) -> None:
        """Handle a new result."""

    def on_dropped(self, request_id: str) -> None:
        """Handle a result that was dropped."""


class ServerFuture:
    """The future result of queued work. Coroutines on any event loop can wait for it.

    Args:
        request_id: request id of the work.
        model_id: the model that the work belongs to, if any.
        result: the encoded result, if the work is done.
    """

    def __init__(self, request_id: str, model_id: str | None, result: EncodedResult | None = None) -> None:
        self.request_id = request_id
        self.model_id = model_id
        self.result = result
        self._finished = CrossLoopEvent()

    async def wait(self, timeout_s: float) -> EncodedResult | None:
        """Wait for the result and return it; None after ``timeout_s`` seconds."""
        if self.result is None:
            await self._finished.wait(timeout_s, lambda: self.result is not None)
        return self.result

    def resolve(self, result: EncodedResult) -> None:
        """Set the result and wake all waiters."""
        self.result = result
        self._finished.set()


class FutureStore:
    """All futures of a server, pending and finished. Thread safe.

    Args:
        encoder: encodes results.
        retention: limits on finished results.
        clock: seconds since the epoch.
        ids: creates request ids.
        transform_result: transforms a result before it is encoded.
    """

    def __init__(
        self,
        encoder: ResultEncoder,
        retention: RetentionPolicy,
        clock: Callable[[], float],
        ids: RequestIds,
        transform_result: Callable[[Any], Any],
    ) -> None:
        self._encoder = encoder
        self._clock = clock
        self._ids = ids
        self._transform_result = transform_result
        self._lock = threading.RLock()
        self._count = 0
        self._pending: dict[str, tuple[ServerFuture, ResultListener | None]] = {}
        self.results = RetainedResults(retention, clock)
        """The results of finished work."""

    @property
    def pending_count(self) -> int:
        """Number of futures without a result."""
        return len(self._pending)

    def submit(
        self,
        enqueue: Callable[[Callable[[], None]], None],
        work: Callable[[], Any],
        model_id: str | None = None,
        listener: ResultListener | None = None,
    ) -> str:
        """Queue work and return its request id.

        Args:
            enqueue: queues a job on a worker.
            work: the work; its return value (a model) or its exception becomes the result. The work does not start if
                the future is cancelled before.
            model_id: the model that the work belongs to, if any.
            listener: listener for the result.
        """
        with self._lock:
            self._count += 1
            future = ServerFuture(self._ids.create(self._count), model_id)
            self._pending[future.request_id] = future, listener
        enqueue(lambda: self._run(future, work))
        return future.request_id

    def cancel(self, future: ServerFuture) -> None:
        """Fail a pending future; work that has started continues, and its result is dropped."""
        self._finish(future, self._encode_failure("cancelled by cancel_future", "user"))

    def get(self, request_id: str) -> ServerFuture:
        """Return the future with a request id.

        Raises:
            HttpError: 404 for an unknown id, 410 if the result was dropped.
        """
        with self._lock:
            if request_id in self._pending:
                return self._pending[request_id][0]
            retained = self.results.get(request_id)
            if retained is not None:
                return ServerFuture(request_id, retained.model_id, retained.result)
            number = self._ids.parse(request_id)
            if number is not None and 1 <= number <= self._count:
                raise HttpError(410, f"the result of {request_id} is no longer kept")
        raise HttpError(404, f"unknown request {request_id!r}; use a request_id from the response to a submission")

    def mark_fetched(self, future: ServerFuture) -> None:
        """Record that the result was sent, so that it is dropped before unfetched results."""
        with self._lock:
            self.results.mark_fetched(future.request_id)

    def fail_pending(self, model_id: str | None, reason: str) -> None:
        """Fail the pending futures of one model, or all of them if ``model_id`` is None."""
        with self._lock:
            futures = [future for future, _ in self._pending.values() if model_id in (None, future.model_id)]
        for future in futures:
            self._finish(future, self._encode_failure(reason, "server"))

    def _run(self, future: ServerFuture, work: Callable[[], Any]) -> None:
        if future.result is None:
            self._finish(future, self._compute(future, work))

    def _compute(self, future: ServerFuture, work: Callable[[], Any]) -> EncodedResult:
        try:
            # The engine checks its results for overflow, so numpy's warnings are redundant.
            with np.errstate(all="ignore"):
                return self._encoder.encode_result(self._transform_result(work()))
        except (EngineError, HttpError, DialectError) as error:
            return self._encode_failure(str(error), "user")
        except Exception as error:
            log.exception("request %s failed", future.request_id)
            text = f"internal server error: {type(error).__name__}: {error}; see the traceback in the server's log"
            return self._encode_failure(text, "server")

    def _encode_failure(self, reason: str, category: str) -> EncodedResult:
        return self._encoder.encode_result(RequestFailedResponse(error=reason, category=category))

    def _finish(self, future: ServerFuture, result: EncodedResult) -> None:
        result = attrs.evolve(result, content=compact(result.content))
        with self._lock:
            pending = self._pending.pop(future.request_id, None)
            if pending is None:
                return
            _, listener = pending
            # Before the result is added, because adding it may drop it and call on_dropped.
            if listener is not None:
                listener.on_finished(future.request_id, result)
            self.results.add(
                future.request_id,
                RetainedResult(
                    result=result,
                    model_id=future.model_id,
                    finished_at=self._clock(),
                    on_dropped=None if listener is None else listener.on_dropped,
                ),
            )
            future.resolve(result)
