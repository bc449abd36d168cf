"""Records of operations, which futures, log messages and callbacks read."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from functools import partial
from typing import Any, Literal, TypeVar

import attrs

from tinkerwire_base.call import WireRequest
from tinkerwire_base.html_repr import HtmlRepr

from .background_thread import CALLBACKS
from .build_request import BuildRequest
from .log_fields import current, log_fields
from .logger import log
from .operation_trace import OperationTrace

T = TypeVar("T")
FIRST_WAIT_LOG_S = 10.0
"""Seconds until the first log message about a wait."""
WAIT_LOG_INTERVAL_S = 60.0
CHECKS_PER_INTERVAL = 10
"""A report is late by at most this part of the shorter interval."""
FutureState = Literal["pending", "submitted", "done", "failed", "cancelled"]
"""``pending``: not yet accepted by the server; ``submitted``: accepted, without a result; the others are final."""


@attrs.frozen(kw_only=True)
class WaitStatus(HtmlRepr):
    """Description of a wait, for logs and callbacks."""

    request_type: str
    """``Sample``, ``OptimStep`` ..., or the name of a call without a future."""
    request_id: str
    """Id of the oldest request without a result; empty until the server accepts a request."""
    waited_s: float
    """Seconds since the call."""
    queue_state: str
    """State of the server's queue; empty until the server accepts a request."""
    reason: str
    """Reason of the wait; the text of the server if it sent one."""

    def __str__(self) -> str:
        request = f"{self.request_type or 'a request'} {self.request_id}".rstrip()
        parts = [f"queue {self.queue_state}" if self.queue_state else "", self.reason]
        reason = ": ".join(part for part in parts if part) or "it waits for the operations before it"
        return f"{request}: no result after {self.waited_s:.0f} s; {reason}"


@attrs.frozen(kw_only=True)
class Progress(HtmlRepr):
    """Progress of an operation; a large batch has several requests."""

    done: int
    """Requests with a result."""
    total: int
    """Requests of the operation; the number may grow while the operation runs."""
    request_ids: tuple[str, ...]
    """Ids of the accepted requests on the server."""
    elapsed_s: float
    """Seconds from the call until now or the end."""


OnWait = Callable[[WaitStatus], object]
_numbers = itertools.count(1)


class OperationRecord:
    """Record of one operation. Written on the loop thread, read on any thread."""

    __slots__ = (
        "_ended",
        "_next_report_s",
        "_open",
        "builds",
        "done",
        "is_error_logged",
        "is_error_retrieved",
        "kind",
        "may_be_accepted",
        "number",
        "on_wait",
        "queue",
        "queue_state",
        "reason",
        "request_ids",
        "started",
        "step",
        "total",
        "trace",
        "waiters",
    )

    def __init__(self, kind: str = "") -> None:
        self.number = next(_numbers)
        """Id of the operation in this process, in traces and log records."""
        self.kind = kind
        """``Sample``, ``OptimStep`` ..., as in the server's metrics; empty for calls without a future."""
        self.request_ids: tuple[str, ...] = ()
        self.done = 0
        self.total = 1
        self.queue_state, self.reason = "", ""
        self.step = ""
        """Description of the current step before the first accepted request and after the last result."""
        self.may_be_accepted = False
        """True if the server may have accepted a request whose response was lost."""
        self.queue: object = None
        """Queue in which the operation waits; None while it does not."""
        self.waiters: list[None] = []
        """One entry for each caller that waits for the result, and for each callback."""
        self.is_error_retrieved = False
        """True once a caller has the error, or no caller can get it because the future is gone."""
        self.is_error_logged = False
        self.builds: tuple[BuildRequest, ...] = ()
        """Requests that make the server create something, until their results arrive."""
        self.on_wait: OnWait | None = None
        """The user's function that is called for every wait that is long enough to be logged."""
        self._open: tuple[tuple[str, str], ...] = ()
        """Ids and kinds of the requests that it waits for, the oldest first."""
        self._next_report_s = FIRST_WAIT_LOG_S
        self.started = time.monotonic()
        """Monotonic time of the call."""
        self.trace: OperationTrace | None = None
        """Events of the operation; None unless they are recorded."""
        self._ended: float | None = None

    def mark_submitted(self, kind: str, request_id: str) -> None:
        """Record that the server has accepted a request."""
        self.kind = self.kind or kind
        self.request_ids += (request_id,)
        self.total = max(self.total, len(self.request_ids))
        self.queue_state, self.reason = "active", ""
        self._open += ((request_id, kind),)

    def stop_waiting(self, request_id: str) -> None:
        """Record that the operation no longer waits for a request."""
        self._open = tuple(request for request in self._open if request[0] != request_id)

    def add_created_model(self, model_id: str) -> BuildRequest:
        """Record a model that is useless unless the operation succeeds."""
        build = BuildRequest(
            request=WireRequest(method="POST", path="/api/v1/create_model", headers={}), model_id=model_id
        )
        self.builds += (build,)
        return build

    def remove_build(self, build: BuildRequest) -> None:
        """Remove a request that leaves nothing to cancel."""
        self.builds = tuple(other_build for other_build in self.builds if other_build is not build)

    def mark_finished(self, request_id: str) -> None:
        """Record that a request has its result or error, so that nothing is left to cancel."""
        self.builds = tuple(build for build in self.builds if build.request_id != request_id)

    def get_wait_status(self) -> WaitStatus:
        """Return the description of the current wait."""
        request_id, kind = next(iter(self._open), ("", self.kind))
        return WaitStatus(
            request_type=kind,
            request_id=request_id,
            waited_s=self.elapsed_s,
            queue_state=self.queue_state if request_id else "",
            reason=self.reason if request_id else self.step,
        )

    def mark_ended(self) -> None:
        """Record the end of the operation."""
        self._ended = time.monotonic()
        self.on_wait = None

    def is_report_due(self) -> bool:
        """Return whether the wait is to be reported now; True once for each report."""
        if self._ended is not None or self.elapsed_s < self._next_report_s:
            return False
        self._next_report_s = self.elapsed_s + WAIT_LOG_INTERVAL_S
        return True

    @property
    def elapsed_s(self) -> float:
        """Return the seconds from the start until now, or until the end."""
        return (self._ended or time.monotonic()) - self.started


def set_current_operation(record: OperationRecord) -> None:
    """Make a record the current one of this task and of the tasks that it starts later."""
    current.set(record)


def current_operation() -> OperationRecord:
    """Return the record of the current operation; an unused record outside of operations."""
    return current.get() or OperationRecord()


class _ThreadState(threading.local):
    blocking_queue: object = None


thread_state = _ThreadState()
"""Queue that the work of this thread blocks; None on most threads."""


def create_detached_task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start background work that does not write into the record of the operation that needed it first."""
    return Context().run(asyncio.create_task, work)


class WaitReporter:
    """Reporter of long waits to the log and to the user's function: after 10 s, then once a minute.

    Used on the loop thread. One timer serves all operations: a timer for each costs more than the rest of its record.

    Args:
        records: the operations under way, in the order of their starts; may change on any thread.
        warn: logs a message of a kind, see ``ThrottledLog.warn``.
    """

    def __init__(self, records: Mapping[OperationRecord, None], warn: Callable[[str, str, object], None]) -> None:
        self._records = records
        self._warn = warn
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Report until no operation is under way."""
        if self._timer is None:
            interval_s = min(FIRST_WAIT_LOG_S, WAIT_LOG_INTERVAL_S) / CHECKS_PER_INTERVAL
            self._timer = asyncio.get_running_loop().call_later(interval_s, self._report)

    def _report(self) -> None:
        self._timer = None
        for record in list(self._records):
            if record.elapsed_s < FIRST_WAIT_LOG_S:
                break  # the records after it are younger
            if record.is_report_due():
                wait = record.get_wait_status()
                Context().run(self._warn_of, record, wait)
                if record.on_wait is not None:
                    CALLBACKS.call(partial(_call_listener, record, record.on_wait, wait))
        if self._records:
            self.start()

    def _warn_of(self, record: OperationRecord, wait: WaitStatus) -> None:
        # The timer that led here belongs to another operation.
        set_current_operation(record)
        self._warn(f"waiting {wait.request_type}", "%s", wait)


def _call_listener(record: OperationRecord, listener: OnWait, waiting: WaitStatus) -> None:
    try:
        listener(waiting)
    except BaseException as error:  # an error of the user's callback does not affect the result
        text = "on_wait failed for %s %s: %r"
        fields = log_fields(record)
        log.error(text, waiting.request_type, waiting.request_id, error, exc_info=error, extra=fields)
