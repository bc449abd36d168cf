"""The operations of one connection: their start on the loop thread, their deadlines and their end."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from tinkerwire_base.errors import APITimeoutError, ClientClosedError, RequestTimeoutError

from .._futures.build_request import BuildRequest
from .._futures.deadline import Deadline
from .._futures.event_loop import LOOP
from .._futures.future import APIFuture
from .._futures.operation_record import (
    OnWait,
    OperationRecord,
    WaitReporter,
    create_detached_task,
    set_current_operation,
)
from .retry import RetryConfig
from .throttled_log import ThrottledLog

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
        self._pid = os.getpid()
        self._under_way: dict[OperationRecord, None] = {}
        """Operations from their start to their end, in order; every change is atomic, on any thread."""
        self._wait_reporter = WaitReporter(self._under_way, throttled_log.warn)
        self._running: set[asyncio.Task[Any]] = set()
        self._background: set[asyncio.Task[Any]] = set()

    def start(
        self, work: Callable[[], Coroutine[Any, Any, T]], kind: str, deadline: Deadline, owner: Owner | None
    ) -> APIFuture[T]:
        """Run an operation on the loop thread now; see :meth:`Connection.start`.

        Args:
            work: the operation.
            kind: its name in errors and logs.
            deadline: the time at which every wait of the operation ends with RequestTimeoutError.
            owner: held until the operation ends.

        Raises:
            ClientClosedError: the client is closed, or was made before a fork.
        """
        if self.closed or not self.is_of_this_process:
            raise self.closed_error()
        record = OperationRecord(kind)
        self._under_way[record] = None
        try:
            future = LOOP.start(lambda: self._run(work, record, deadline, owner))
            future.add_done_callback(partial(self._forget, record))
            return APIFuture(future, record)
        except BaseException as error:
            self._under_way.pop(record, None)
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

    async def _run(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        record: OperationRecord,
        deadline: Deadline,
        owner: Owner | None,
    ) -> T:
        task = asyncio.current_task()
        assert task is not None
        if self.closed:
            raise self.closed_error()
        self._running.add(task)
        task.add_done_callback(self._discard_task)
        set_current_operation(record)
        timer = deadline.start(task)
        if owner is not None:
            record.on_wait = owner.on_wait
        self._wait_reporter.start()
        try:
            return await work()
        except asyncio.CancelledError:
            if self.closed:
                raise self.closed_error() from None
            self._abandon(record)
            if deadline.has_passed:
                raise self._deadline_error(deadline, record) from None
            raise
        except Exception as error:
            if isinstance(error, APITimeoutError) and deadline.has_passed:
                self._abandon(record)
                raise self._deadline_error(deadline, record) from error
            if isinstance(error, RequestTimeoutError):
                self._abandon(record)
            self._on_error(error)
            raise
        finally:
            if timer is not None:
                timer.cancel()
            record.mark_ended()
            # An error keeps this frame, and must not keep the client open.
            del work, owner

    def _abandon(self, record: OperationRecord) -> None:
        builds, record.builds = record.builds, []
        for build in builds:
            self._on_abandoned(build)

    def _deadline_error(self, deadline: Deadline, record: OperationRecord) -> RequestTimeoutError:
        error = deadline.error(record)
        self._on_error(error)
        return error

    def _forget(self, record: OperationRecord, _: object) -> None:
        self._under_way.pop(record, None)

    def _discard_task(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._background.discard(task)
        if not task.cancelled():
            # The future holds the error. If the user cancelled the future, asyncio must not log the error.
            task.exception()
