"""How far an operation is: written where it runs, read by its future, by logs and by callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Literal

import attrs

FutureState = Literal["pending", "submitted", "done", "failed", "cancelled"]
"""``pending``: not taken by the server so far; ``submitted``: taken, no result yet; the others are final."""


@attrs.frozen(kw_only=True)
class Waiting:
    """What is waited for, for logs and for callbacks."""

    request_type: str
    request_id: str
    waited_s: float
    queue_state: str
    reason: str


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


class Track:
    """The record of one operation. Written on the loop thread, read on any."""

    __slots__ = ("_ended", "_started", "done", "kind", "queue_state", "reason", "request_ids", "total")

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        """``Sample``, ``OptimStep`` ...: what the server's metrics call it; empty for calls that promise nothing."""
        self.request_ids: tuple[str, ...] = ()
        self.done = 0
        self.total = 1
        self.queue_state, self.reason = "", ""
        self._started = time.monotonic()
        self._ended: float | None = None

    def submitted(self, kind: str, request_id: str) -> None:
        """The server has taken a request."""
        self.kind = self.kind or kind
        self.request_ids += (request_id,)
        self.total = max(self.total, len(self.request_ids))
        self.queue_state, self.reason = "active", ""

    def ended(self) -> None:
        """The operation is over, one way or another."""
        self._ended = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds from the start until now, or until the end."""
        return (self._ended or time.monotonic()) - self._started


_current: ContextVar[Track | None] = ContextVar("tinkerwire_track", default=None)


def begin(track: Track) -> None:
    """Make a record that of the task that calls this, and of the tasks that it starts from now on."""
    _current.set(track)


def current() -> Track:
    """The record of the operation that the caller is part of; one that nobody reads for work that is none."""
    return _current.get() or Track()


OnWait = Callable[[Waiting], object]
