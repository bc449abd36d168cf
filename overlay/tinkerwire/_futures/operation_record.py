"""How far an operation is: written where it runs, read by its future, by logs and by callbacks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from functools import partial
from typing import Any, Literal, TypeVar

import attrs

from tinkerwire_base.call import WireRequest

from .background_thread import CALLBACKS
from .build_request import BuildRequest
from .logger import log

T = TypeVar("T")
FIRST_WAIT_LOG_S = 10.0
"""Nothing waits longer without a word."""
WAIT_LOG_INTERVAL_S = 60.0
FutureState = Literal["pending", "submitted", "done", "failed", "cancelled"]
"""``pending``: not taken by the server so far; ``submitted``: taken, no result yet; the others are final."""


@attrs.frozen(kw_only=True)
class WaitStatus:
    """What is waited for, for logs and for callbacks."""

    request_type: str
    """``Sample``, ``OptimStep`` ..., or the name of a call that promises nothing."""
    request_id: str
    """Of the oldest request without a result; empty while the server has taken none."""
    waited_s: float
    """Seconds since the operation was asked for."""
    queue_state: str
    """Empty while the server has taken no request."""
    reason: str
    """Why it is so, in the server's words if it gave any."""

    def __str__(self) -> str:
        who = f"{self.request_type or 'a request'} {self.request_id}".rstrip()
        parts = [f"queue {self.queue_state}" if self.queue_state else "", self.reason]
        why = ": ".join(part for part in parts if part) or "it waits for what was asked for before it"
        return f"{who}: no result after {self.waited_s:.0f} s; {why}"


@attrs.frozen(kw_only=True)
class Progress:
    """How far an operation is; large batches are several requests."""

    done: int
    """Requests whose result is there."""
    total: int
    """Requests of the operation, as far as is known."""
    request_ids: tuple[str, ...]
    """What the server calls those that it took."""
    elapsed_s: float
    """Seconds since the operation was asked for, until now or its end."""


class OperationRecord:
    """The record of one operation. Written on the loop thread, read on any."""

    __slots__ = (
        "_ended",
        "_open",
        "_started",
        "builds",
        "done",
        "is_error_logged",
        "is_error_retrieved",
        "kind",
        "may_be_accepted",
        "queue",
        "queue_state",
        "reason",
        "request_ids",
        "step",
        "total",
        "waiters",
    )

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        """``Sample``, ``OptimStep`` ...: what the server's metrics call it; empty for calls that promise nothing."""
        self.request_ids: tuple[str, ...] = ()
        self.done = 0
        self.total = 1
        self.queue_state, self.reason = "", ""
        self.step = ""
        """What goes on while the server has taken no request, or after it has given all results."""
        self.may_be_accepted = False
        """Whether the server may have taken a request up whose reply was lost."""
        self.queue: object = None
        """The line in which it waits for its turn; None while it does not."""
        self.waiters: list[None] = []
        """One entry for each caller that waits for the result, and for each callback."""
        self.is_error_retrieved = False
        """True once a caller has the error, or no caller can get it because the future is gone."""
        self.is_error_logged = False
        self.builds: list[BuildRequest] = []
        """Requests that make the server build something, until their results are there."""
        self._open: dict[str, str] = {}
        self._started = time.monotonic()
        self._ended: float | None = None

    def mark_submitted(self, kind: str, request_id: str) -> None:
        """The server has taken a request."""
        self.kind = self.kind or kind
        self.request_ids += (request_id,)
        self.total = max(self.total, len(self.request_ids))
        self.queue_state, self.reason = "active", ""
        self._open[request_id] = kind

    def stop_waiting(self, request_id: str) -> None:
        """A request of those is waited for no more."""
        self._open.pop(request_id, None)

    def add_created_model(self, model_id: str) -> BuildRequest:
        """Record a model that is of no use until the operation is over."""
        build = BuildRequest(
            request=WireRequest(method="POST", path="/api/v1/create_model", headers={}), model_id=model_id
        )
        self.builds.append(build)
        return build

    def remove_build(self, build: BuildRequest) -> None:
        """Forget a request that leaves nothing to cancel."""
        self.builds = [each for each in self.builds if each is not build]

    def mark_finished(self, request_id: str) -> None:
        """Note that a request has its result or its error: nothing is left to cancel."""
        self.builds = [build for build in self.builds if build.request_id != request_id]

    def get_wait_status(self) -> WaitStatus:
        """What is waited for now."""
        request_id, kind = next(iter(self._open.items()), ("", self.kind))
        return WaitStatus(
            request_type=kind,
            request_id=request_id,
            waited_s=self.elapsed_s,
            queue_state=self.queue_state if request_id else "",
            reason=self.reason if request_id else self.step,
        )

    def mark_ended(self) -> None:
        """The operation is over, one way or another."""
        self._ended = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds from the start until now, or until the end."""
        return (self._ended or time.monotonic()) - self._started


_current: ContextVar[OperationRecord | None] = ContextVar("tinkerwire_track", default=None)


def set_current_operation(track: OperationRecord) -> None:
    """Make a record that of the task that calls this, and of the tasks that it starts from now on."""
    _current.set(track)


def current_operation() -> OperationRecord:
    """The record of the operation that the caller is part of; one that nobody reads for work that is none."""
    return _current.get() or OperationRecord()


class _ThreadState(threading.local):
    blocking_queue: object = None


thread_state = _ThreadState()
"""The line that stands still until the work of this thread is done; None on most threads."""


def create_detached_task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start work that goes on in the background, and writes nothing into the record of whoever needed it first."""
    return Context().run(asyncio.create_task, work)


OnWait = Callable[[WaitStatus], object]


class WaitReporter:
    """Tells log and listener of an operation's wait until :meth:`end`: after 10 s, then once a minute.

    Used on the loop thread. ``say`` logs a message of a kind, see ``ThrottledLog.warn``.
    """

    def __init__(
        self, track: OperationRecord, say: Callable[[str, str, object], None], listener: OnWait | None
    ) -> None:
        self._track = track
        self._say = say
        self._listener = listener
        self._timer = asyncio.get_running_loop().call_later(FIRST_WAIT_LOG_S, self._speak)

    def end(self) -> None:
        """Say nothing more."""
        self._timer.cancel()

    def _speak(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WAIT_LOG_INTERVAL_S, self._speak)
        waiting = self._track.get_wait_status()
        self._say(f"waiting {waiting.request_type}", "%s", waiting)
        if self._listener is not None:
            CALLBACKS.call(partial(_call_listener, self._listener, waiting))


def _call_listener(listener: OnWait, waiting: WaitStatus) -> None:
    try:
        listener(waiting)
    except BaseException as error:  # it is the user's, and takes nothing away from the result
        text = "on_wait failed for %s %s: %r"
        log.error(text, waiting.request_type, waiting.request_id, error, exc_info=error)
