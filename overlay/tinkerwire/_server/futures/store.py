"""The store of futures: runs queued work on workers and keeps the results to be fetched."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol

import attrs
import numpy as np

from tinkerwire._server.bounded_table import compact
from tinkerwire._server.engine import EngineError
from tinkerwire._server.futures.cross_loop_event import CrossLoopEvent
from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._server.futures.retained_results import RetainedResult, RetainedResults
from tinkerwire._server.futures.retention_policy import RetentionPolicy
from tinkerwire._server.http.encoding import EncodedResult, ResultEncoder
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.storage.database import StorageError
from tinkerwire._server.storage.journal import Journal, StoredResult
from tinkerwire_base.errors import DialectError
from tinkerwire_generated.models import RequestFailedResponse

log = logging.getLogger("tinkerwire._server")


class ResultListener(Protocol):
    """A listener for the results of samples; called from any thread.

    Args:
        sampler_id: the sampling session.
        copy: number of the client's copy that requested the samples.
    """

    sampler_id: str
    copy: int

    def next_cursor(self) -> int:
        """Return the cursor for the next result."""
        ...

    def on_finished(self, request_id: str, result: EncodedResult, cursor: int) -> None:
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

    def wake(self) -> None:
        """End all waits without a result."""
        self._finished.set()


@attrs.frozen(eq=False)
class FutureJob:
    """Queued work of a future, as a function that runs it and sets the result.

    Args:
        run: runs the work, unless it is not pending.
        is_pending: returns whether the future still waits for the work.
    """

    run: Callable[[], None]
    is_pending: Callable[[], bool]

    def __call__(self) -> None:
        """Run the work."""
        self.run()


class FutureStore:
    """All futures of a server, pending and finished. Thread safe.

    Args:
        encoder: encodes results.
        retention: limits on finished results.
        clock: seconds since the epoch.
        ids: creates request ids.
        transform_result: transforms a result before it is encoded.
        journal: records the operations and their results.
    """

    def __init__(
        self,
        encoder: ResultEncoder,
        retention: RetentionPolicy,
        clock: Callable[[], float],
        ids: RequestIds,
        transform_result: Callable[[Any], Any],
        journal: Journal | None = None,
    ) -> None:
        self._encoder = encoder
        self._clock = clock
        self._ids = ids
        self._transform_result = transform_result
        self._journal = journal or Journal()
        self._lock = threading.RLock()
        self._count = self._journal.read_last_number()
        self._resumed: int | None = None
        self._pending: dict[str, _PendingWork] = {}
        self.results = RetainedResults(retention, clock, self._on_dropped)
        """The results of finished work."""

    @property
    def pending_count(self) -> int:
        """Number of futures without a result."""
        return len(self._pending)

    def submit(
        self,
        enqueue: Callable[[FutureJob], None],
        work: Callable[[], Any],
        model_id: str | None = None,
        listener: ResultListener | None = None,
        owner: str | None = None,
        record: Callable[[int], None] | None = None,
        give_up: Callable[[], None] | None = None,
    ) -> str:
        """Record and queue work, and return its request id.

        Args:
            enqueue: queues a job on a worker, once the journal has the operation.
            work: the work; its return value (a model) or its exception becomes the result. The work does not start if
                the future is cancelled before.
            model_id: the model that the work belongs to, if any.
            listener: listener for the result.
            owner: id of the object in the journal that the operation is removed with; by default the model.
            record: records the state that the work of an operation number produced, in the transaction of its result.
            give_up: records that the work will not run, in the transaction of its failure.
        """
        with self._journal:
            with self._lock:
                number = self._resumed or self._count + 1
                self._count = max(self._count, number)
                future = ServerFuture(self._ids.create(number), model_id)
                self._pending[future.request_id] = _PendingWork(future, number, listener, record, give_up)
            if self._resumed is None:
                self._journal.add_operation(number, owner or model_id)
            job = FutureJob(partial(self._run, future, work), partial(self._is_pending, future))
            self._journal.after_commit(lambda: enqueue(job))
        return future.request_id

    @contextmanager
    def resume(self, number: int) -> Iterator[None]:
        """Give the next work of the block the number of an operation that the journal has."""
        self._resumed = number
        try:
            yield
        finally:
            self._resumed = None

    def fail(self, number: int, model_id: str | None, reason: str) -> None:
        """Fail an operation of the journal that cannot be queued again."""
        future = ServerFuture(self._ids.create(number), model_id)
        self._pending[future.request_id] = _PendingWork(future, number)
        self._finish(future, self._encode_failure(reason, "user"))

    def restore(self, result: StoredResult, model: type, listener: ResultListener | None) -> None:
        """Add a result of the journal.

        Args:
            result: the result.
            model: class of the result.
            listener: listener that gets the result of a sample, if any.
        """
        request_id = self._ids.create(result.number)
        encoded = EncodedResult(content=result.content, media=result.media, model=model)
        if listener is not None:
            listener.on_finished(request_id, encoded, result.cursor)
        self.results.add(request_id, _retain(encoded, result.model_id, result.finished_at, listener))
        if result.fetched:
            self.results.mark_fetched(request_id)

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
                return self._pending[request_id].future
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
            if self.results.mark_fetched(future.request_id):
                self._journal.mark_fetched(self._ids.parse(future.request_id) or 0)

    def fail_pending(self, model_id: str, reason: str) -> None:
        """Fail the pending futures of one model."""
        self._fail_all(lambda future: future.model_id == model_id, reason)

    def close(self, reason: str | None) -> None:
        """Fail all pending futures, or only end the requests that wait for them.

        Args:
            reason: the reason of the failures; None leaves the operations in the journal to another server.
        """
        if reason is not None:
            with suppress(StorageError):
                self._fail_all(lambda future: True, reason)
        with self._lock:
            futures = [work.future for work in self._pending.values()]
            self._pending.clear()
        for future in futures:
            future.wake()

    def _fail_all(self, is_meant: Callable[[ServerFuture], bool], reason: str) -> None:
        with self._lock:
            futures = [work.future for work in self._pending.values() if is_meant(work.future)]
        with self._journal:
            for future in futures:
                self._finish(future, self._encode_failure(reason, "server"), has_effect=False)

    def _run(self, future: ServerFuture, work: Callable[[], Any]) -> None:
        if self._is_pending(future):
            try:
                self._finish(future, self._compute(future, work))
            except StorageError as error:
                # The operation is still pending in the journal, from which the server reads its state again.
                log.warning("the result of %s was not kept: %s", future.request_id, error)

    def _is_pending(self, future: ServerFuture) -> bool:
        return future.request_id in self._pending and not self._journal.has_failed

    def _compute(self, future: ServerFuture, work: Callable[[], Any]) -> EncodedResult:
        try:
            # The engine checks its results for overflow, so numpy's warnings are redundant.
            with np.errstate(all="ignore"):
                return self._encoder.encode_result(self._transform_result(work()))
        except (EngineError, HttpError, DialectError) as error:
            return self._encode_failure(str(error), "user")
        except OSError as error:
            log.warning("request %s failed: %s", future.request_id, error)
            text = f"the folder of the server cannot be used: {error}; free space on its disk, or make it writable"
            return self._encode_failure(text, "server")
        except Exception as error:
            log.exception("request %s failed", future.request_id)
            text = f"internal server error: {type(error).__name__}: {error}; see the traceback in the server's log"
            return self._encode_failure(text, "server")

    def _encode_failure(self, reason: str, category: str) -> EncodedResult:
        return self._encoder.encode_result(RequestFailedResponse(error=reason, category=category))

    def _finish(self, future: ServerFuture, result: EncodedResult, *, has_effect: bool = True) -> None:
        result = attrs.evolve(result, content=compact(result.content))
        # The block excludes other threads, so that each future gets one result.
        with self._journal:
            work = self._pending.get(future.request_id)
            if work is None:
                return
            cursor = 0 if work.listener is None else work.listener.next_cursor()
            if has_effect and work.record is not None:
                work.record(work.number)
            if not has_effect and work.give_up is not None:
                work.give_up()
            self._journal.add_result(
                StoredResult(
                    number=work.number,
                    content=result.content,
                    media=result.media,
                    model=result.model.__name__,
                    model_id=future.model_id,
                    finished_at=self._clock(),
                    sampler_id=None if work.listener is None else work.listener.sampler_id,
                    copy=0 if work.listener is None else work.listener.copy,
                    cursor=cursor,
                )
            )
            self._journal.after_commit(lambda: self._add_result(work, result, cursor))

    def _add_result(self, work: _PendingWork, result: EncodedResult, cursor: int) -> None:
        request_id = work.future.request_id
        with self._lock:
            self._pending.pop(request_id, None)
            # Before the result is added, because adding it may drop it and call on_dropped.
            if work.listener is not None:
                work.listener.on_finished(request_id, result, cursor)
            self.results.add(request_id, _retain(result, work.future.model_id, self._clock(), work.listener))
            work.future.resolve(result)

    def _on_dropped(self, request_id: str) -> None:
        self._journal.remove_result(self._ids.parse(request_id) or 0)


@attrs.frozen
class _PendingWork:
    """Work without a result.

    Args:
        future: its future.
        number: number of the operation.
        listener: listener for the result.
        record: see :meth:`FutureStore.submit`.
        give_up: see :meth:`FutureStore.submit`.
    """

    future: ServerFuture
    number: int
    listener: ResultListener | None = None
    record: Callable[[int], None] | None = None
    give_up: Callable[[], None] | None = None


def _retain(
    result: EncodedResult, model_id: str | None, finished_at: float, listener: ResultListener | None
) -> RetainedResult:
    on_dropped = None if listener is None else listener.on_dropped
    return RetainedResult(result=result, model_id=model_id, finished_at=finished_at, on_dropped=on_dropped)
