"""The operations of one connection: their start on the loop thread, their deadlines and their end."""

from __future__ import annotations

import asyncio
import math
import os
import time
import weakref
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tinkerwire_base.errors import APITimeoutError, ClientClosedError, RequestTimeoutError

from .._futures.build_request import BuildRequest
from .._futures.deadline import Deadline
from .._futures.event_loop import LOOP, run_for
from .._futures.future import APIFuture
from .._futures.operation_future import OperationFuture
from .._futures.operation_record import (
    OnWait,
    OperationRecord,
    WaitReporter,
    create_detached_task,
    set_current_operation,
)
from .retry import RetryConfig
from .start_queue import StartQueue
from .throttled_log import ThrottledLog

if TYPE_CHECKING:
    from .._trace.recorder import Recorder

T = TypeVar("T")
START_S = 0.005
"""Interval at which `wait` looks for operations that have not reached the loop yet."""
CLOSE_S = 5.0
"""Time limit for operations to react to their cancellation."""


class Owner:
    """Keeps a connection open, with the user's functions that its operations call.

    Clients and running operations hold the owner. Background work must not: it would keep a dropped client open.
    """

    on_wait: OnWait | None = None
    """Called on the loop thread for every wait that is long enough to be logged."""
    retry: RetryConfig


class OperationRunner:
    """Runs operations on the loop thread, from their start to their end.

    Args:
        throttled_log: logs long waits.
        on_error: called with each error of an operation before it is raised.
        on_abandoned: called with each request of a cancelled or late operation that builds something.
    """

    def __init__(
        self,
        throttled_log: ThrottledLog,
        on_error: Callable[[Exception], None],
        on_abandoned: Callable[[BuildRequest], None],
    ) -> None:
        self._on_error = on_error
        self._on_abandoned = on_abandoned
        self.closed = False
        self.recorder: Recorder | None = None
        """Records the operations that start from now on; None records nothing."""
        self._pid = os.getpid()
        self._under_way: dict[OperationRecord, None] = {}
        """Operations from their start to their end, in order; every change is atomic, on any thread."""
        self._wait_reporter = WaitReporter(self._under_way, throttled_log.warn)
        self._running: set[asyncio.Task[Any]] = set()
        self._background: set[asyncio.Task[Any]] = set()
        self._queues: weakref.WeakSet[StartQueue] = weakref.WeakSet()
        """The queues of operations that have not started; on the loop thread."""

    def start(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        kind: str,
        deadline: Deadline,
        owner: Owner | None,
        queue: StartQueue | None = None,
    ) -> APIFuture[T]:
        """Run an operation on the loop thread; see :meth:`Connection.start`.

        Args:
            work: the operation.
            kind: its name in errors and logs.
            deadline: the time at which every wait of the operation ends with RequestTimeoutError.
            owner: held until the operation ends.
            queue: the queue in which the operation waits for its start; None starts it at once.

        Raises:
            ClientClosedError: the client is closed, or was made before a fork.
        """
        if self.closed or not self.is_of_this_process:
            raise self.closed_error()
        operation = _Operation(self, work, kind, deadline, owner, queue)
        if self.recorder is not None:
            self.recorder.begin(operation.record)
        self._under_way[operation.record] = None
        try:
            LOOP.call(operation.begin)
            operation.future.add_done_callback(operation.end)
            return APIFuture(operation.future, operation.record)
        except BaseException as error:
            self._under_way.pop(operation.record, None)
            if self.recorder is not None:
                self.recorder.forget(operation.record)
            if not isinstance(error, RuntimeError) or not self.closed:
                raise
            # A signal handler or another thread has closed the client since the check above.
            raise self.closed_error() from None

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run background work until it ends or the operations are ended; on the loop thread."""
        task = create_detached_task(work)
        self._background.add(task)
        task.add_done_callback(self._discard_task)
        return task

    def under_way(self) -> list[OperationRecord]:
        """Return the operations that have not ended."""
        return list(self._under_way)

    async def wait(self, timeout: float | None) -> None:
        """Wait until no operation is under way or the client is closed, at most ``timeout`` seconds."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while self._under_way and not self.closed and (remaining := end - time.monotonic()) > 0:
            if self._running:
                await asyncio.wait(self._running, timeout=None if remaining == math.inf else remaining)
            else:
                # The operation has not reached the loop yet, or its result has not reached its future.
                await asyncio.sleep(min(remaining, START_S))

    def reject_new(self) -> None:
        """Reject new operations with ClientClosedError; on any thread."""
        self.closed = True

    async def end(self) -> None:
        """End all operations with ClientClosedError; other requests can still be sent."""
        self.closed = True
        for queue in list(self._queues):
            for operation in queue.remove_all():
                operation.fail(self.closed_error())
        tasks = self._running | self._background
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)

    @property
    def is_of_this_process(self) -> bool:
        """True in the process that made the client, False in a fork of it."""
        return self._pid == os.getpid()

    def closed_error(self) -> ClientClosedError:
        """Return the error of a client that is closed, or was made before a fork."""
        why = "was closed" if self.is_of_this_process else "belongs to the process that this one was forked from"
        return ClientClosedError(f"the client {why}; create a new ServiceClient")

    def enqueue(self, operation: _Operation[Any], queue: StartQueue) -> None:
        """Start an operation once its queue has room; on the loop thread."""
        self._queues.add(queue)
        self._wait_reporter.start()
        queue.add(operation)

    async def run(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        record: OperationRecord,
        deadline: Deadline,
        owner: Owner | None,
        queue: StartQueue | None,
    ) -> T:
        """Run the work of an operation, to its result or error."""
        task = asyncio.current_task()
        assert task is not None
        if self.closed:
            raise self.closed_error()
        self._running.add(task)
        task.add_done_callback(self._discard_task)
        set_current_operation(record)
        if record.trace is not None:
            record.trace.add("start")
        timer = deadline.start(task)
        self._wait_reporter.start()
        try:
            return await work()
        except asyncio.CancelledError:
            if self.closed:
                raise self.closed_error() from None
            self._abandon(record)
            if deadline.has_passed:
                raise self.deadline_error(deadline, record) from None
            raise
        except Exception as error:
            if isinstance(error, APITimeoutError) and deadline.has_passed:
                self._abandon(record)
                raise self.deadline_error(deadline, record) from error
            if isinstance(error, RequestTimeoutError):
                self._abandon(record)
            self._on_error(error)
            raise
        finally:
            if timer is not None:
                timer.cancel()
            record.mark_ended()
            if queue is not None:
                queue.mark_started(record)
            # An error keeps this frame, and must not keep the client open.
            del work, owner

    def _abandon(self, record: OperationRecord) -> None:
        builds, record.builds = record.builds, ()
        for build in builds:
            self._on_abandoned(build)

    def deadline_error(self, deadline: Deadline, record: OperationRecord) -> RequestTimeoutError:
        """Return the error of an operation whose deadline has passed."""
        error = deadline.error(record)
        self._on_error(error)
        return error

    def forget(self, record: OperationRecord) -> None:
        """Record that an operation is no longer under way; on any thread."""
        self._under_way.pop(record, None)

    def _discard_task(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._background.discard(task)
        if not task.cancelled():
            # The future holds the error. If the user cancelled the future, asyncio must not log the error.
            task.exception()


class _Operation(Generic[T]):
    """Operation from the user's call to its end. Until it starts it has no task, which would take more memory."""

    __slots__ = ("_queue", "_runner", "_to_start", "deadline", "future", "record")

    def __init__(
        self,
        runner: OperationRunner,
        work: Callable[[], Coroutine[Any, Any, T]],
        kind: str,
        deadline: Deadline,
        owner: Owner | None,
        queue: StartQueue | None,
    ) -> None:
        self.future: OperationFuture[T] = OperationFuture()
        self.record = OperationRecord(kind)
        self.record.on_wait = None if owner is None else owner.on_wait
        self.deadline = deadline
        self._runner = runner
        self._queue = queue
        self._to_start: tuple[Callable[[], Coroutine[Any, Any, T]], Owner | None, Context] | None
        self._to_start = work, owner, copy_context()
        """Arguments of the start, until then: the future keeps the operation, which must not keep the client open."""

    def begin(self) -> None:
        """Start, or enter the queue; on the loop thread."""
        if self._queue is None or self._runner.closed:
            self.start()
        elif not self.is_ended:
            self._runner.enqueue(self, self._queue)

    @property
    def is_ended(self) -> bool:
        """True once the future has its outcome."""
        return self.future.done()

    def start(self) -> bool:
        """Run the work as a task; return False if the operation was cancelled."""
        to_start, self._to_start = self._to_start, None
        if to_start is None or self.is_ended:
            self.record.mark_ended()
            return False
        work, owner, context = to_start
        run, record, deadline, queue = self._runner.run, self.record, self.deadline, self._queue
        context.run(run_for, self.future, lambda: run(work, record, deadline, owner, queue))
        return True

    def time_out(self) -> None:
        """End before the start, because the deadline has passed."""
        self.fail(self._runner.deadline_error(self.deadline, self.record))

    def fail(self, error: Exception) -> None:
        """End with an error before the start."""
        self._to_start = None
        self.record.mark_ended()
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)

    def end(self, _: object) -> None:
        """Record that the future has its outcome; on any thread."""
        self._runner.forget(self.record)
        if self.record.trace is not None and self._runner.recorder is not None:
            self._runner.recorder.end(self.record, self.future)
        if self._to_start is not None:  # cancelled before the start
            self._to_start = None
            self.record.mark_ended()
            if self._queue is not None:
                self._queue.remove_ended()
