"""The recorder of one connection: collects finished operations and passes them on in batches, off the event loop."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Protocol

from .._futures.background_thread import BackgroundThread
from .._futures.event_loop import LOOP
from .._futures.logger import log
from .._futures.operation_record import OperationRecord
from .._futures.operation_trace import OperationTrace
from .events import join_events, split_events

BATCH_S = 0.1
"""Seconds for which finished operations are collected; a killed process loses those of this time."""
MAX_PENDING = 20_000
"""Finished operations that wait for a slow receiver; further ones are dropped, and the file counts them."""
RECEIVERS_S = 5.0
"""Time for which closing waits for receivers that work."""
NAMELESS = "call"
"""Kind of an operation that sent no request, and has no name."""


class Receiver(Protocol):
    """Receives finished operations: a file, metrics, or OpenTelemetry."""

    capture: Callable[[], object] | None
    """Returns what an operation takes from its caller; called on the caller's thread. None if it takes nothing."""

    def receive(self, operations: Sequence[OperationTrace], dropped: int) -> None:
        """Take finished operations, and the number of those that were dropped before them."""

    def close(self) -> None:
        """Give up resources."""


class Recorder:
    """Records the operations of one connection, and gives them to receivers on a thread of its own."""

    def __init__(self) -> None:
        self._receivers: list[Receiver] = []
        self._open: dict[OperationTrace, None] = {}
        self._ended: deque[OperationTrace] = deque()
        self._dropped = 0
        self._steps = 0
        self._is_scheduled = False
        self._is_flushing = False
        self._closed = False
        self._lock = threading.RLock()
        """Held while receivers work, so that operations reach them in order."""
        _recorders.add(self)
        _register_exit()

    def add_receiver(self, receiver: Receiver) -> None:
        """Pass the operations that finish from now on to another receiver, too."""
        self.flush()
        with self._lock:
            self._receivers.append(receiver)

    # --- operations ------------------------------------------------------------------------------------------------

    def begin(self, record: OperationRecord) -> None:
        """Record an operation that the caller starts; on the caller's thread."""
        context = None
        for receiver in self._receivers:
            if receiver.capture is not None:
                context = receiver.capture()
        step = self._steps
        if record.kind == "OptimStep":
            self._steps += 1
        record.trace = trace = OperationTrace(record.number, record.kind, step, record.started, context)
        self._open[trace] = None

    def forget(self, record: OperationRecord) -> None:
        """Forget an operation whose start was interrupted, so that the caller has no future of it."""
        trace, record.trace = record.trace, None
        if trace is not None:
            self._open.pop(trace, None)

    def end(self, record: OperationRecord, future: concurrent.futures.Future[Any]) -> None:
        """Record that the future of an operation has its outcome; on any thread."""
        trace = record.trace
        if trace is None or self._open.pop(trace, trace) is trace:  # closing has recorded it
            return
        if future.cancelled():
            outcome = "cancelled"
        elif (error := concurrent.futures.Future.exception(future)) is not None:  # without a place for waiting threads
            outcome, trace.error = "failed", type(error).__name__
        else:
            outcome = "done"
        trace.is_awaited = bool(record.waiters)
        trace.kind, trace.request_ids = record.kind or trace.kind, record.request_ids
        record.trace = None  # the caller may keep the future, and the record with it
        self._finish(trace, outcome)

    def _finish(self, trace: OperationTrace, outcome: str) -> None:
        trace.outcome, trace.end = outcome, monotonic()
        if len(self._ended) >= MAX_PENDING:
            self._dropped += 1
        else:
            self._ended.append(trace)
        if self._closed:
            self.flush()
        elif not self._is_scheduled:
            self._is_scheduled = True
            try:
                LOOP.call(_schedule(self))
            except RuntimeError:  # the loop has ended
                self.flush()

    # --- receivers -------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Pass all finished operations to the receivers; on any thread."""
        with self._lock:
            if self._is_flushing:  # a signal handler came in between
                return
            self._is_flushing = True
            try:
                self._flush()
            finally:
                self._is_flushing = False

    def _flush(self) -> None:
        self._is_scheduled = False
        dropped, self._dropped = self._dropped, 0
        operations: list[OperationTrace] = []
        while self._ended:
            operations.append(self._ended.popleft())
        for trace in operations:
            trace.kind = trace.kind or NAMELESS
            if trace.outcome not in ("done", "failed"):
                # It may still clean up, which adds events.
                kept = [event for event in split_events(list(trace.events)) if event[1] <= trace.end]
                trace.events = join_events(kept)
        if operations or dropped:
            for receiver in self._receivers:
                try:
                    receiver.receive(operations, dropped)
                except Exception as error:  # as of an exporter; the run matters more
                    log.warning("a receiver of operations failed: %r", error)

    def close(self) -> None:
        """Record the operations under way as unfinished, pass on all operations, and close the receivers."""
        if self._closed:
            return
        if not self._lock.acquire(timeout=RECEIVERS_S):
            text = "the last operations are not recorded: the file or the exporter has not taken those before in %.0f s"
            log.warning(text, RECEIVERS_S)
            return
        try:
            self._closed = True
            for trace in list(self._open):
                if self._open.pop(trace, trace) is None:
                    self._finish(trace, "unfinished")
            self.flush()
            for receiver in self._receivers:
                receiver.close()
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Forget everything in a forked child: the operations and the file belong to the parent."""
        self._closed, self._receivers = True, []
        self._open, self._ended, self._lock = {}, deque(), threading.RLock()


def _schedule(recorder: Recorder) -> Callable[[], object]:
    return lambda: asyncio.get_running_loop().call_later(BATCH_S, WRITER.call, recorder.flush)


WRITER = BackgroundThread("tinkerwire-trace")
_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()
_registered: set[int] = set()
"""Ids of the processes whose end closes the recorders."""


def _close_all() -> None:
    for recorder in list(_recorders):
        recorder.close()


def _abandon_all() -> None:
    for recorder in list(_recorders):
        recorder.abandon()


def _register_exit() -> None:
    """Close the recorders at the end of the process: programs that do not close their client have a complete trace."""
    if os.getpid() in _registered:
        return
    _registered.add(os.getpid())
    # A forked worker of multiprocessing ends without the functions of atexit.
    multiprocessing_util = sys.modules.get("multiprocessing.util")
    if multiprocessing_util is not None:
        multiprocessing_util.Finalize(None, _close_all, exitpriority=0)
    atexit.register(_close_all)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
