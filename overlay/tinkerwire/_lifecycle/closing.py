"""The life of an open connection: what keeps it open, and its end by close, by being dropped, or with the program."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress

from tinkerwire_base.errors import CancelledSubmissionError
from tinkerwire_base.short_repr import short_repr

from .._connection.connection import Connection
from .._connection.operation_runner import Owner
from .._futures.deadline import normalize_timeout
from .._futures.event_loop import LOOP
from .._futures.future import APIFuture
from .._futures.operation_record import OnWait, OperationRecord
from .._futures.reporting import log
from .._session.session import FinishStatus, Session, ended_by

MAX_NAMED = 5
"""Dropped operations that a log line names; of the others it gives the number."""
WAY_OUT = "wait for their results, or leave a `with` block of the client, which waits for them"


class Lifetime(Owner):
    """Keeps a connection and its session open until close, or until no client and no operation holds it any more.

    Args:
        connection: what is closed in the end.
        session: the session that is used over it; None for clients without one.
        on_wait: see ServiceClient.
        exit_timeout: see ServiceClient.

    Raises:
        TypeError, ValueError: an exit_timeout that is not a number of seconds.
    """

    def __init__(
        self,
        connection: Connection,
        session: Session | None = None,
        *,
        on_wait: OnWait | None = None,
        exit_timeout: float | None = None,
    ) -> None:
        self._exit_timeout = _normalize_exit_timeout(exit_timeout)
        self.connection = connection
        self.session = session
        self.on_wait = on_wait
        self.retry = connection.retry
        connection.keep_open_while(self)
        LOOP.acquire()
        _open.add(connection)
        self._closing = ConnectionCloser(connection, session)
        # The program's end does not close connections: that would take time, and servers end sessions by themselves.
        weakref.finalize(self, self._closing.begin_dropped).atexit = False

    def close(self, status: FinishStatus = "success", detail: str | None = None) -> APIFuture[None]:
        """Drop the operations under way, end the session and close the connection; later calls do nothing more."""
        return self._closing.begin(status, detail, "the client was closed")

    def exit(self, error: BaseException | None) -> None:
        """End a ``with`` block: wait for the operations under way unless an error ended it, then close."""
        why = "the `with` block was left by an error"
        if error is None:
            try:
                why = self._wait()
            except BaseException as interruption:
                self._closing.begin(ended_by(interruption), None, f"{interruption!r} ended the wait for them").result()
                raise
        self._closing.begin(ended_by(error), None, why).result()

    async def exit_async(self, error: BaseException | None) -> None:
        """:meth:`exit` for coroutines."""
        why = "the `with` block was left by an error"
        if error is None:
            try:
                why = await self._wait_async()
            except BaseException as interruption:
                await self._closing.begin(ended_by(interruption), None, f"{interruption!r} ended the wait for them")
                raise
        await self._closing.begin(ended_by(error), None, why)

    def _wait(self) -> str:
        waiting = self._waiting()
        if waiting is None:
            return "the client was closed"
        try:
            waiting.result()
        except CancelledSubmissionError:  # the loop has ended: another thread has closed the client
            pass
        finally:
            waiting.cancel()
        return f"exit_timeout={self._exit_timeout} s is over"

    async def _wait_async(self) -> str:
        waiting = self._waiting()
        if waiting is None:
            return "the client was closed"
        with suppress(CancelledSubmissionError):
            await waiting
        return f"exit_timeout={self._exit_timeout} s is over"

    def _waiting(self) -> APIFuture[None] | None:
        connection, timeout = self.connection, self._exit_timeout
        # On the loop's own thread nothing can wait for the loop.
        if connection.closed or not connection.is_of_this_process or LOOP.is_current_thread:
            return None
        try:
            return APIFuture(LOOP.start(lambda: connection.operations.wait(timeout)))
        except RuntimeError:  # another thread or a signal handler has closed the client
            return None


class CloseFuture(APIFuture[None]):
    """The future of close. When its result is there, the client's thread has ended unless another client uses it."""

    def result(self, timeout: float | None = None) -> None:
        """Wait for the end of the client, and of its thread."""
        super().result(timeout)
        LOOP.join()


class ConnectionCloser:
    """Closes a connection once; any thread may start it, also within a signal handler or a finalizer."""

    def __init__(self, connection: Connection, session: Session | None) -> None:
        self._connection = connection
        self._session = session
        self._has_begun = False
        self._end: Future[None] = Future()
        # Not to be cancelled: half closed is worse than either.
        self._end.set_running_or_notify_cancel()
        self._ended = CloseFuture(self._end)

    def begin(self, status: FinishStatus | None, detail: str | None, why: str) -> APIFuture[None]:
        """Refuse new operations, drop those under way, and close; later calls give the same future.

        Args:
            status: the finish status of the session; with None the server gets no finish request.
            detail: further text for the server.
            why: the reason for dropping operations, for the log.
        """
        self._connection.operations.closed = True
        if self._end.done():
            return self._ended
        if not self._connection.is_of_this_process:
            # The connections belong to the parent process, which still uses them.
            self._end.set_result(None)
            return self._ended
        try:
            LOOP.start(lambda: self._finish(status, detail, why))
        except RuntimeError:
            # No lock is held here, as a signal handler may close in the midst of it: that one was faster.
            if not self._end.done():
                raise
        return self._ended

    def begin_dropped(self) -> None:
        """Close a connection that no client and no operation uses any more; the session runs out on the server."""
        if self._connection.closed or not self._connection.is_of_this_process:
            return
        try:
            self.begin(None, None, "the client was dropped")
        except RuntimeError:  # the loop has ended with the program
            return

    async def _finish(self, status: FinishStatus | None, detail: str | None, why: str) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        log_dropped(self._connection.operations.under_way(), why)
        error: Exception | None = None
        try:
            await self._connection.operations.end()
            try:
                if self._session is not None:
                    await self._session.close(status, detail)
            finally:
                await self._connection.close()
        except Exception as found:
            error = found
        finally:
            LOOP.release()
            if error is None:
                self._end.set_result(None)
            else:
                self._end.set_exception(error)


def log_dropped(operations: Sequence[OperationRecord], why: str) -> None:
    """Log which operations are lost, by kind and request id; nothing if there are none."""
    if not operations:
        return
    named = [
        f"{operation.kind or 'a request'} {operation.request_ids[-1] if operation.request_ids else '(not submitted)'}"
        for operation in operations[:MAX_NAMED]
    ]
    others = len(operations) - len(named)
    more = f" and {others} more" if others else ""
    noun = "operation" if len(operations) == 1 else "operations"
    log.warning("%s: %d %s under way dropped: %s%s; %s", why, len(operations), noun, ", ".join(named), more, WAY_OUT)


_open: weakref.WeakSet[Connection] = weakref.WeakSet()
"""Connections of this process that may have operations under way."""


@atexit.register
def _log_dropped_at_exit() -> None:
    operations = [
        operation
        for connection in list(_open)
        if connection.is_of_this_process and not connection.closed
        for operation in connection.operations.under_way()
    ]
    log_dropped(operations, "the program ends")


def _normalize_exit_timeout(exit_timeout: float | None) -> float | None:
    seconds = normalize_timeout(exit_timeout, "exit_timeout")
    if exit_timeout is not None and exit_timeout < 0:
        raise ValueError(
            f"exit_timeout must be at least 0 s, got {short_repr(exit_timeout)}; None waits without a limit"
        )
    return seconds
