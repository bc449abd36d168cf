"""Pool of the connections of one traffic class."""

from __future__ import annotations

import asyncio

from .http_connection import HttpConnection

KEEP_ALIVE_S = 60.0
"""Time for which an idle connection is kept."""


class ConnectionPool:
    """Connections of one traffic class. Used on one event loop.

    Args:
        max_connections: maximum number of requests at once.
    """

    def __init__(self, max_connections: int) -> None:
        self.slots = asyncio.Semaphore(max_connections)
        """Free connections; a wait for one counts for the deadline of the operation, not for the request's timeout."""
        self.all_closed = asyncio.Event()
        """Set while no connection is open."""
        self.all_closed.set()
        self._open: set[HttpConnection] = set()
        self._idle: list[HttpConnection] = []
        """Connections without a request; the last used is the last."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def add(self, connection: HttpConnection) -> None:
        """Add a new connection; :meth:`remove` must be called once it is closed."""
        if self._is_closed:
            connection.abort()
        if connection.is_reusable:
            self._open.add(connection)
            self.all_closed.clear()

    def remove(self, connection: HttpConnection) -> None:
        """Remove a connection that is closed."""
        self._open.discard(connection)
        if not self._open:
            self.all_closed.set()

    def take_idle(self) -> HttpConnection | None:
        """Return the connection that was used last, if it is still open."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                return connection
        return None

    def give_back(self, connection: HttpConnection) -> None:
        """Keep a connection after a request, or close it if it cannot carry another."""
        if not connection.is_reusable:
            connection.abort()
            return
        self._idle.append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_S, self._close_idle)

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._open):
            connection.abort()

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - KEEP_ALIVE_S
        for connection in self._idle:
            if connection.idle_since <= oldest:
                connection.abort()
        self._idle = [connection for connection in self._idle if connection.is_reusable]
        self._timer = None
        if self._idle:
            self._timer = loop.call_at(self._idle[0].idle_since + KEEP_ALIVE_S, self._close_idle)
