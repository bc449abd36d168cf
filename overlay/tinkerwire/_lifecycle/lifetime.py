"""The lifetime of a connection and its session, for services, REST clients and copies of sampling clients.

States of a connection, with the calls that change them::

    Lifetime(...)
         |
         v        close(), or the end of a `with` block
       OPEN ----------------------------------------------> CLOSING ---------------> CLOSED
         |                                                     ^    session finished,  ^
         +--- no client and no operation holds the lifetime ---+    transport closed   |
         |    (the server gets no finish request)                                      |
         +--- close() in a forked child: the sockets belong to the parent process -----+

OPEN: the lifetime holds the client's event loop; operations start and run. CLOSING: new operations raise
ClientClosedError, running ones are cancelled and logged, then the session is finished and the transport closed.
CLOSED: the loop is released; its thread ends with the last connection. The end of the program closes nothing: that
would take time, and servers expire sessions by themselves; it only logs the operations that it drops.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeAlias

from tinkerwire_base.errors import CancelledSubmissionError
from tinkerwire_base.short_repr import short_repr

from .._connection.connection import Connection
from .._connection.operation_runner import Owner
from .._futures.deadline import normalize_timeout
from .._futures.event_loop import LOOP
from .._futures.future import APIFuture
from .._futures.logger import log
from .._futures.operation_record import OnWait, OperationRecord
from .._session.session import FinishStatus, Session, finish_status
from .._telemetry.reporter import Telemetry, create_reporter

MAX_LOGGED_OPERATIONS = 5
"""Dropped operations that a log line names; the line counts the others."""
HINT = "wait for their results, or use the client in a `with` block, which waits for them"
OpenSession: TypeAlias = Callable[[Connection, "Telemetry | None"], Session]
"""Makes the session of a connection; the reporter receives its events, if telemetry is enabled."""


class Lifetime(Owner):
    """Keeps a connection open until close, or until no client and no operation holds it any more.

    Args:
        connection: the connection to close at the end.
        open_session: makes the session that is used over the connection; None for clients without a session.
        on_wait: see ServiceClient.
        exit_timeout: see ServiceClient.

    Raises:
        TypeError, ValueError: exit_timeout is not a number of seconds.
    """

    def __init__(
        self,
        connection: Connection,
        open_session: OpenSession | None = None,
        *,
        on_wait: OnWait | None = None,
        exit_timeout: float | None = None,
    ) -> None:
        self._exit_timeout = _normalize_exit_timeout(exit_timeout)
        self.connection = connection
        self.telemetry = create_reporter(connection)
        self._session = None if open_session is None else open_session(connection, self.telemetry)
        self.on_wait = on_wait
        self.retry = connection.retry
        connection.attach(self, self.telemetry)
        LOOP.acquire()
        _open_connections.add(connection)
        self._closer = ConnectionCloser(connection, self._session)
        weakref.finalize(self, self._closer.start_dropped).atexit = False

    @property
    def session(self) -> Session:
        """The session that is used over the connection.

        Raises:
            RuntimeError: the lifetime has no session.
        """
        if self._session is None:
            raise RuntimeError("this client has no session")
        return self._session

    def close(self, status: FinishStatus = "success", detail: str | None = None) -> APIFuture[None]:
        """Drop the operations under way, finish the session and close the connection; later calls do nothing more."""
        return self._closer.start(status, detail, "the client was closed")

    def exit(self, error: BaseException | None) -> None:
        """End a ``with`` block: wait for the operations under way unless an error ended it, then close."""
        reason = "the `with` block was left by an error"
        if error is None:
            try:
                reason = self._wait()
            except BaseException as interruption:
                self._closer.start(finish_status(interruption), None, f"{interruption!r} ended the wait").result()
                raise
        self._closer.start(finish_status(error), None, reason).result()

    async def exit_async(self, error: BaseException | None) -> None:
        """:meth:`exit` for coroutines."""
        reason = "the `with` block was left by an error"
        if error is None:
            try:
                reason = await self._wait_async()
            except BaseException as interruption:
                await self._closer.start(finish_status(interruption), None, f"{interruption!r} ended the wait")
                raise
        await self._closer.start(finish_status(error), None, reason)

    def _wait(self) -> str:
        waiting = self._start_waiting()
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
        waiting = self._start_waiting()
        if waiting is None:
            return "the client was closed"
        with suppress(CancelledSubmissionError):
            await waiting
        return f"exit_timeout={self._exit_timeout} s is over"

    def _start_waiting(self) -> APIFuture[None] | None:
        """Start to wait for the operations under way; None if nothing can be waited for."""
        connection, timeout = self.connection, self._exit_timeout
        # Code on the loop's own thread cannot wait for the loop.
        if connection.closed or not connection.is_of_this_process or LOOP.is_current_thread:
            return None
        try:
            return APIFuture(LOOP.start(lambda: connection.operations.wait(timeout)))
        except RuntimeError:  # another thread or a signal handler has closed the client
            return None


class CloseFuture(APIFuture[None]):
    """Future returned by close. When ``result()`` returns, the client's thread has ended unless others use it."""

    def result(self, timeout: float | None = None) -> None:
        """Wait until the client is closed and its thread has ended."""
        super().result(timeout)
        LOOP.join()


class ConnectionCloser:
    """Closes a connection once; any thread may start it, also within a signal handler or a finalizer."""

    def __init__(self, connection: Connection, session: Session | None) -> None:
        self._connection = connection
        self._session = session
        self._has_started = False
        self._closed: Future[None] = Future()
        # Users cannot cancel it: a connection that is half closed is of no use.
        self._closed.set_running_or_notify_cancel()
        self._future = CloseFuture(self._closed)

    def start(self, status: FinishStatus | None, detail: str | None, reason: str) -> APIFuture[None]:
        """Reject new operations, drop those under way, and close; later calls return the same future.

        Args:
            status: the finish status of the session; with None the server gets no finish request.
            detail: further text for the server.
            reason: the reason for dropping operations, for the log.
        """
        self._connection.operations.reject_new()
        if self._closed.done():
            return self._future
        if not self._connection.is_of_this_process:
            # The sockets belong to the parent process, which still uses them.
            self._closed.set_result(None)
            return self._future
        try:
            LOOP.start(lambda: self._close(status, detail, reason))
        except RuntimeError:
            # No lock is held here: a signal handler may interrupt this call, and have closed the connection already.
            if not self._closed.done():
                raise
        return self._future

    def start_dropped(self) -> None:
        """Close a connection that no client and no operation holds any more; the server expires the session."""
        if self._connection.closed or not self._connection.is_of_this_process:
            return
        try:
            self.start(None, None, "the client was dropped")
        except RuntimeError:  # the loop has ended with the program
            return

    async def _close(self, status: FinishStatus | None, detail: str | None, reason: str) -> None:
        if self._has_started:
            return
        self._has_started = True
        log_dropped(self._connection.operations.under_way(), reason)
        close_error: Exception | None = None
        try:
            await self._connection.operations.end()
            try:
                if self._session is not None:
                    await self._session.close(status, detail)
            finally:
                await self._connection.close()
        except Exception as error:
            close_error = error
        finally:
            LOOP.release()
            if close_error is None:
                self._closed.set_result(None)
            else:
                self._closed.set_exception(close_error)


def log_dropped(operations: Sequence[OperationRecord], reason: str) -> None:
    """Log the operations that are dropped, if there are any, by kind and request id."""
    if not operations:
        return
    names = [
        f"{operation.kind or 'a request'} {operation.request_ids[-1] if operation.request_ids else '(not submitted)'}"
        for operation in operations[:MAX_LOGGED_OPERATIONS]
    ]
    count = len(operations)
    more = f" and {count - len(names)} more" if count > len(names) else ""
    noun = "operation" if count == 1 else "operations"
    log.warning("%s: %d %s under way dropped: %s%s; %s", reason, count, noun, ", ".join(names), more, HINT)


_open_connections: weakref.WeakSet[Connection] = weakref.WeakSet()
"""Connections of this process that may have operations under way."""


@atexit.register
def _log_dropped_at_exit() -> None:
    operations = [
        operation
        for connection in list(_open_connections)
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
