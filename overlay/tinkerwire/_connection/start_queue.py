"""Queue of samples that have not started: of thousands that wait for a slot in flight, only a few have a task."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from contextlib import suppress
from typing import Protocol

from .._futures.deadline import Deadline
from .._futures.event_loop import LOOP
from .._futures.operation_record import OperationRecord
from .._transport.backpressure import CONNECTIONS, InFlightLimit, Traffic

MAX_STARTING = 2 * CONNECTIONS[Traffic.SAMPLING]
"""Operations of a client that have a task and no slot: enough that a free slot never waits for a task."""
CHECK_S = 0.05
"""Minimum interval between searches for operations whose deadline has passed."""


class Startable(Protocol):
    """Operation that waits for its start."""

    record: OperationRecord
    deadline: Deadline

    @property
    def is_ended(self) -> bool:
        """True if the operation was cancelled."""
        ...

    def start(self) -> bool:
        """Run the operation as a task; return False if it was cancelled."""
        ...

    def time_out(self) -> None:
        """End the operation with the error of its deadline."""

    def fail(self, error: Exception) -> None:
        """End the operation with an error."""


class StartQueue:
    """Queue of the operations of one client that need a slot of a limit. Used on the loop thread.

    An operation starts when fewer than ``MAX_STARTING`` others have started and wait: for the creation of the client,
    or for a slot. Each client has its own queue, so that no client waits for the creation of another one.

    Args:
        limit: the limit, which counts the operations as waiting.
    """

    def __init__(self, limit: InFlightLimit) -> None:
        self._limit = limit
        self._waiting: deque[Startable] = deque()
        self._starting: set[OperationRecord] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False
        """True while the removal of cancelled operations is scheduled."""

    def add(self, operation: Startable) -> None:
        """Start an operation once there is room."""
        self._waiting.append(operation)
        self._limit.waiting += 1
        self._start_next()
        if self._waiting:
            self._set_timer(operation.deadline.end)

    def mark_started(self, record: OperationRecord) -> None:
        """Make room: an operation has a slot, or has ended; further calls for it do nothing."""
        if record in self._starting:
            self._starting.remove(record)
            self._start_next()

    def remove_all(self) -> list[Startable]:
        """Remove and return all operations that have not started."""
        removed = list(self._waiting)
        self._keep([])
        return removed

    def remove_ended(self) -> None:
        """Remove the operations that were cancelled, all at once; on any thread."""
        if not self._has_ended:
            self._has_ended = True
            with suppress(RuntimeError):  # the loop has ended, and the queue with it
                LOOP.call(self._remove_ended)

    def _start_next(self) -> None:
        while self._waiting and len(self._starting) < MAX_STARTING:
            operation = self._waiting.popleft()
            self._limit.waiting -= 1
            if operation.start():
                self._starting.add(operation.record)
        if not self._waiting:
            self._clear_timer()

    def _remove_ended(self) -> None:
        self._has_ended = False
        self._keep([operation for operation in self._waiting if not operation.is_ended])

    def _keep(self, operations: list[Startable]) -> None:
        self._limit.waiting -= len(self._waiting) - len(operations)
        self._waiting = deque(operations)
        if not operations:
            self._clear_timer()

    def _set_timer(self, end: float) -> None:
        """Look for passed deadlines at a time of the loop's clock, which is that of deadlines."""
        loop = asyncio.get_running_loop()
        when = max(end, loop.time() + CHECK_S)
        if when == math.inf or (self._timer is not None and self._timer.when() <= when):
            return
        self._clear_timer()
        self._timer = loop.call_at(when, self._time_out)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        late = [operation for operation in self._waiting if operation.deadline.has_passed]
        if late:
            self._keep([operation for operation in self._waiting if not operation.deadline.has_passed])
        for operation in late:
            operation.time_out()
        if self._waiting:
            self._set_timer(min(operation.deadline.end for operation in self._waiting))
