"""The future that every operation returns."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Generic, NoReturn, TypeVar

from tinkerwire_base.errors import CancelledSubmissionError, ClientClosedError
from tinkerwire_base.html_repr import render_table

from .background_thread import CALLBACKS
from .deadline import normalize_timeout
from .event_loop import LOOP
from .log_fields import log_fields
from .logger import is_on_event_loop, log
from .operation_record import FutureState, OperationRecord, Progress, thread_state
from .timeout import wait_for

T = TypeVar("T")
DEADLOCK_CHECK_S = 0.1
"""Seconds between checks of a loss function's wait for a deadlock."""


class APIFuture(Generic[T]):
    """Result of a running operation: awaitable on any event loop, usable from any thread.

    The future keeps its result or error. An error that is never retrieved is logged once, when the future is dropped.

    Example:
        >>> import tinkerwire as tinker
        >>> with tinker.ServiceClient(base_url="local") as service:
        ...     training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4)
        ...     future = training.save_state("first")
        ...     path = future.result(timeout=60).path
        >>> future.done(), path.endswith("first")
        (True, True)
    """

    def __init__(self, future: concurrent.futures.Future[T], record: OperationRecord | None = None) -> None:
        self._record = record or OperationRecord()
        self._future = future
        # Set last: __del__ treats an instance without it as one whose __init__ was interrupted.
        self._exception_retrieved = False

    # --- the result ------------------------------------------------------------------------------------------------

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, at most ``timeout`` seconds; also inside a running event loop, which then stands still.

        Raises:
            TimeoutError: the result is not there in time; the operation continues.
            CancelledSubmissionError: the operation was cancelled.
            TinkerError: the operation failed.
        """
        self._wait(timeout)
        return self._outcome()

    async def result_async(self, timeout: float | None = None) -> T:
        """Wait like :meth:`result`, in a coroutine. A timeout leaves the operation running; cancellation cancels it."""
        try:
            return await self.watch(timeout)
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def watch(self, timeout: float | None = None) -> T:
        """Wait like :meth:`result`, in a coroutine whose cancellation leaves the operation running."""
        await self.wait_done(timeout)
        return self._outcome()

    async def wait_done(self, timeout: float | None = None) -> None:
        """Wait like :meth:`watch` until the operation has ended; its error does not count as retrieved."""
        timeout = normalize_timeout(timeout)
        if not self._future.done():
            self._record.waiters.append(None)
            try:
                await wait_for(self._end(), timeout)
            except asyncio.TimeoutError:
                self._check_end(timeout)
            finally:
                self._record.waiters.pop()

    def __await__(self) -> Generator[Any, None, T]:
        return self.result_async().__await__()

    async def coroutine(self) -> T:
        """Return this future as a coroutine, for ``asyncio.create_task`` and similar functions."""
        return await self.result_async()

    def future(self) -> concurrent.futures.Future[T]:
        """Return the underlying ``concurrent.futures.Future``; its error counts as retrieved."""
        self.mark_retrieved()
        return self._future

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the error of the operation, or None; wait like :meth:`result`."""
        self._wait(timeout)
        self.mark_retrieved()
        if self._future.cancelled():
            return _cancelled()
        return self._future.exception()

    # --- the operation ---------------------------------------------------------------------------------------------

    def done(self) -> bool:
        """Return whether the future has a result or an error."""
        return self._future.done()

    def cancelled(self) -> bool:
        """Return whether the operation was cancelled."""
        return self._future.cancelled()

    def cancel(self) -> bool:
        """Cancel the operation; an unsent operation is never sent. Return False if it is already done."""
        is_cancelled = self._future.cancel()
        if is_cancelled:
            # The caller of cancel knows the outcome.
            self._record.is_error_retrieved = True
        return is_cancelled

    def add_done_callback(self, callback: Callable[[APIFuture[T]], object]) -> None:
        """Call ``callback`` with this future once it is done, or now if it is.

        Callbacks run one after the other on a separate thread, so that they delay no result; their errors are logged.
        """
        if not callable(callback):
            raise TypeError(f"callback: expected a function of the future, got {type(callback).__name__}")

        def call() -> None:
            try:
                callback(self)
            except BaseException as error:
                is_of_caller = threading.current_thread().name != CALLBACKS.name and not is_on_event_loop()
                if is_of_caller and not isinstance(error, Exception):
                    raise
                fields = log_fields(self._record)
                log.error("a callback of %r failed: %r", self, error, exc_info=error, extra=fields)

        self._record.waiters.append(None)
        if self._future.done():
            call()
        else:
            self._future.add_done_callback(lambda _: CALLBACKS.call(call))

    on_done = add_done_callback

    def call_when_done(self, function: Callable[[APIFuture[T]], object]) -> None:
        """Call an internal function as soon as the future is done, on any thread."""
        self._record.waiters.append(None)
        self._future.add_done_callback(lambda _: function(self))

    @property
    def request_id(self) -> str | None:
        """Id of the request on the server; the last one of several, None before a response."""
        ids = self._record.request_ids
        return ids[-1] if ids else None

    @property
    def state(self) -> FutureState:
        """State of the operation; see :data:`FutureState`."""
        if not self._future.done():
            return "submitted" if self._record.request_ids else "pending"
        if self._future.cancelled():
            return "cancelled"
        return "failed" if self._future.exception() else "done"

    @property
    def queue_state(self) -> str | None:
        """Last queue state from the server, such as ``active`` or ``paused_capacity``; None if not waiting."""
        return (self._record.queue_state or None) if self.state == "submitted" else None

    @property
    def queue_state_reason(self) -> str | None:
        """The server's reason for the queue state, or the error of the last poll."""
        return (self._record.reason or None) if self.state == "submitted" else None

    @property
    def progress(self) -> Progress:
        """Progress of the operation in requests."""
        record = self._record
        ids, total = record.request_ids, record.total
        done = total if self.state == "done" else min(record.done, total)
        return Progress(done=done, total=total, request_ids=ids, elapsed_s=record.elapsed_s)

    def mark_retrieved(self) -> None:
        """Mark the error as retrieved, because it reaches the caller in another way."""
        self._exception_retrieved = self._record.is_error_retrieved = True

    def __repr__(self) -> str:
        name = " ".join(part for part in ("APIFuture", self._record.kind, self.request_id) if part)
        state = self.state
        if state == "failed":
            return f"<{name}: failed: {self._future.exception()!r:.200}>"
        if state not in ("pending", "submitted"):
            return f"<{name}: {state}>"
        parts = [f"{state} for {self._record.elapsed_s:.1f} s"]
        if self.queue_state:
            parts.append(f"queue {self.queue_state}" + (f": {self._record.reason}" if self._record.reason else ""))
        if self._record.total > 1:
            parts.append(f"{self._record.done} of {self._record.total} requests done")
        return f"<{name}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Return a table of the state for notebooks, and what they show of the result."""
        state, progress = self.state, self.progress
        rows = [("operation", self._record.kind), ("request_id", self.request_id), ("state", state)]
        rows += [("queue_state", self.queue_state), ("queue_state_reason", self.queue_state_reason)]
        if progress.total > 1:
            rows.append(("requests", f"{progress.done} of {progress.total} done"))
        rows.append(("elapsed", f"{progress.elapsed_s:.1f} s"))
        if state == "failed":
            # Like the text, it does not count as retrieved.
            rows.append(("error", repr(self._future.exception())))
        table = render_table("APIFuture", [(name, text) for name, text in rows if text])
        result = self._future.result() if state == "done" else None
        show_result = getattr(type(result), "_repr_html_", None)
        return table if show_result is None else table + show_result(result)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an APIFuture cannot be pickled or copied: its operation runs in this process; send its result() instead"
        )

    def __del__(self) -> None:
        if not self.__dict__.get("_exception_retrieved", True) and not sys.is_finalizing():
            record = self._record
            self._future.add_done_callback(lambda future: _log_unretrieved(future, record))

    # --- waiting ---------------------------------------------------------------------------------------------------

    def _wait(self, timeout: float | None) -> None:
        timeout = normalize_timeout(timeout)
        if LOOP.is_current_thread and not self._future.done():
            raise RuntimeError("this would block the client's own loop thread; await the future instead")
        self._record.waiters.append(None)
        try:
            if thread_state.blocking_queue is not None:
                timeout = self._wait_unless_behind(thread_state.blocking_queue, timeout)
            self._future.exception(timeout)
        except concurrent.futures.CancelledError:
            return
        except concurrent.futures.TimeoutError:
            self._check_end(timeout)
        finally:
            self._record.waiters.pop()

    def _wait_unless_behind(self, queue: object, timeout: float | None) -> float | None:
        """Wait on a thread whose work blocks a queue; return the remaining time, RuntimeError for a deadlock."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            remaining = None if end is None else max(0.0, end - time.monotonic())
            # The queue of the operation is known once the loop has started it.
            concurrent.futures.wait(
                [self._future], DEADLOCK_CHECK_S if remaining is None else min(DEADLOCK_CHECK_S, remaining)
            )
            if self._future.done() or remaining == 0:
                return remaining
            if self._record.queue is queue:
                raise RuntimeError(
                    f"deadlock: {self!r} is queued behind the loss function that waits for it; wait outside the "
                    "function, or use another client"
                )

    async def _end(self) -> None:
        loop = asyncio.get_running_loop()
        end = asyncio.Event()

        def tell(_: object) -> None:
            try:
                loop.call_soon_threadsafe(end.set)
            except RuntimeError:  # the loop that waited is closed by now
                return

        self._future.add_done_callback(tell)
        await end.wait()

    def _check_end(self, timeout: float | None) -> None:
        if not self._future.done():
            raise TimeoutError(f"no result within {timeout:g} s; the operation continues") from None

    def _outcome(self) -> T:
        self.mark_retrieved()
        if self._future.cancelled():
            raise _cancelled()
        return self._future.result()


AwaitableConcurrentFuture = APIFuture
"""Official name of a future that wraps one of ``concurrent.futures``, which user code creates in tests."""


def describe_creation(creation: APIFuture[str], description: str) -> str:
    """Return the id of the created object, or a description before it has one."""
    if creation.state == "done":
        return f"{description} {creation.result()}"
    return f"{description} whose creation {'failed' if creation.state == 'failed' else 'is ' + creation.state}"


def _cancelled() -> CancelledSubmissionError:
    return CancelledSubmissionError(
        "the operation was cancelled; if its request had been sent by then, the server still runs it"
    )


def _log_unretrieved(future: concurrent.futures.Future[Any], record: OperationRecord) -> None:
    error = None if future.cancelled() else future.exception()
    record.is_error_retrieved = True
    # The caller of close() knows that open operations are lost.
    if error is None or isinstance(error, ClientClosedError) or record.is_error_logged:
        return
    operation = " ".join((record.kind or "an operation", *record.request_ids[-1:]))
    text, fields = "%s failed, and its error was never retrieved: %s", log_fields(record)
    log.error(text, operation, error, exc_info=error, extra=fields)
