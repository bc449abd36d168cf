"""Numbers of seconds as libraries take them, and the deadline of an operation, which every wait in it keeps."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from tinkerwire_base.errors import RequestTimeoutError
from tinkerwire_base.short_repr import short_repr

from .operation_record import OperationRecord, current_operation

T = TypeVar("T")
SHORTEST_S = 0.001
"""In place of zero and less, which some libraries take as no limit at all."""
CLOCK_S = 0.001
"""Timers may fire this much early."""


def clamp_timeout(seconds: float | None) -> float | None:
    """Make a time limit that every library keeps: None for no limit, never zero, negative, infinite or not a number."""
    if seconds is None or seconds > threading.TIMEOUT_MAX:
        return None
    return float(seconds) if seconds > SHORTEST_S else SHORTEST_S


def normalize_timeout(timeout: float | None, name: str = "timeout") -> float | None:
    """Check a user's time limit, which errors call ``name``; None for no limit, 0 for a negative one.

    Raises:
        TypeError, ValueError: the limit is not a number of seconds.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"{name}: expected seconds, got {short_repr(timeout)} ({type(timeout).__name__})")
    if timeout != timeout:  # noqa: PLR0124  (math.isnan overflows for integers that no float holds)
        raise ValueError(f"{name}: expected seconds, got nan")
    if timeout <= 0:
        return 0.0
    return None if timeout > threading.TIMEOUT_MAX else float(timeout)


def require_positive_timeout(timeout: float | None) -> float | None:
    """Check a user's time limit that cannot be over from the start; see :func:`normalize_timeout`."""
    seconds = normalize_timeout(timeout)
    if seconds == 0:
        raise ValueError(f"timeout must be greater than 0 s, got {short_repr(timeout)}; None sets no separate limit")
    return seconds


class Deadline:
    """The time by which an operation must end, counted from the user's call.

    Args:
        seconds: the time limit; None or infinity for no limit.
        setting: the name of the setting that sets the limit, for errors.
    """

    __slots__ = ("end", "given", "seconds", "setting")

    def __init__(self, seconds: float | None, setting: str) -> None:
        self.setting = setting
        self.given = math.inf if seconds is None else seconds
        self.seconds = clamp_timeout(seconds)
        self.end = math.inf if self.seconds is None else time.monotonic() + self.seconds
        """Time of the monotonic clock; infinity for no deadline."""

    @property
    def remaining_s(self) -> float:
        """Seconds until then, infinity for no deadline; negative after it."""
        return self.end - time.monotonic()

    @property
    def has_passed(self) -> bool:
        """True once the time is used up."""
        return self.remaining_s <= CLOCK_S

    def start(self, task: asyncio.Task[Any]) -> asyncio.TimerHandle | None:
        """Make this the deadline of a running task and of the tasks that it starts, and cancel the task then."""
        _deadline.set(self)
        if self.seconds is None:
            return None
        return asyncio.get_running_loop().call_later(max(0.0, self.remaining_s), task.cancel)

    def error(self, record: OperationRecord) -> RequestTimeoutError:
        """Make the error of an operation that was not done in time."""
        request_id = record.request_ids[-1] if record.request_ids else ""
        if record.queue_state:
            state = f"queue {record.queue_state}{': ' + record.reason if record.reason else ''}"
        else:
            state = record.step or "it waits in line"
        way_out = "; the server may still be working on it" if request_id else ""
        return RequestTimeoutError(
            f"{record.kind or 'request'} {request_id or '(not submitted)'}: no result within "
            f"{self.setting}={self.given:g} s ({state}){way_out}",
            request_id=request_id,
        )


_deadline: ContextVar[Deadline | None] = ContextVar("tinkerwire_deadline", default=None)


def remaining_s() -> float:
    """Return the seconds that the current operation has left; infinity without a deadline."""
    deadline = _deadline.get()
    return math.inf if deadline is None else deadline.remaining_s


def is_deadline_passed() -> bool:
    """Return whether the deadline of the current operation has passed."""
    return remaining_s() <= CLOCK_S


def deadline_error() -> RequestTimeoutError:
    """Return the error of the current operation for a wait that its deadline ended."""
    return (_deadline.get() or Deadline(0, "the time limit")).error(current_operation())


def create_task_without_deadline(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start work that several operations share, and that the deadline of one of them must not cancel."""
    context = copy_context()
    context.run(_deadline.set, None)
    return context.run(asyncio.create_task, work)
