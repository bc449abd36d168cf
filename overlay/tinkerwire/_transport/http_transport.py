"""The default transport, over connections of its own."""

from __future__ import annotations

import asyncio
import os
import ssl
import weakref
import zlib
from concurrent.futures import wait

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APIError

from .._futures.event_loop import LOOP
from .._futures.timeout import wait_for
from .backpressure import Traffic, count_connections
from .base import ConnectionSlot, remaining_seconds
from .connection_pool import ConnectionPool
from .connector import Connector
from .errors import CONNECT_TIMEOUT_S, connect_timeout_error, connection_error, describe_trust_store, timeout_error
from .http_connection import HttpConnection
from .poll_connections import PollConnections
from .response_body import decompress_response

FINALIZE_TIMEOUT_S = 1.0
"""Time that the end of the program waits for connections to close."""


class HttpTransport:
    """The default transport, with separate connections for every traffic class, which are kept alive.

    It uses the system's certificate store, SSL_CERT_FILE and the proxy variables, but not ``~/.netrc``. It neither
    follows redirects, which could send the API key to any host, nor stores cookies.

    Args:
        base_url: the address of the server.
        files_per_poll: files that the program opens for each poll; 2 if each is for a client with a connection.

    Raises:
        ValueError: the address cannot be used, or the environment names an unsupported kind of proxy.
    """

    def __init__(self, base_url: str, files_per_poll: int = 1) -> None:
        self._base_url = base_url
        self._connector = Connector(base_url)
        self._pools: dict[Traffic, ConnectionPool] = {}
        sample_polls, self._max_connections = count_connections(files_per_poll)
        self.poll_connections = PollConnections(sample_polls)

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        pool = self._pools.get(traffic) or self._open(traffic)
        url, loop = self._base_url + request.path, asyncio.get_running_loop()
        try:
            async with ConnectionSlot(pool.slots, request, self._base_url):
                seconds = remaining_seconds(timeout_s)
                deadline = None if seconds is None else loop.time() + seconds
                connection = pool.take_idle() or await self._connect(request, pool, seconds)
                try:
                    response = await connection.exchange(request, self._connector.encode_head, url, deadline)
                finally:
                    pool.give_back(connection)
            if "content-encoding" not in response.headers:
                return response
            remaining = None if deadline is None else deadline - loop.time()
            return await wait_for(decompress_response(request, url, response), remaining)
        except APIError:  # raised by this client; some are TimeoutErrors
            raise
        except (asyncio.TimeoutError, TimeoutError):  # two classes before Python 3.11
            error: APIConnectionError = timeout_error(request, self._base_url, timeout_s)
        except (zlib.error, OSError) as cause:
            error = connection_error(request, self._base_url, cause)
        raise error

    async def close(self) -> None:
        """See :class:`Transport`."""
        await _close(self._pools)

    async def _connect(self, request: WireRequest, pool: ConnectionPool, seconds: float | None) -> HttpConnection:
        hint = self._connector.hint
        limit_s = CONNECT_TIMEOUT_S if seconds is None else min(seconds, CONNECT_TIMEOUT_S)
        opened: list[HttpConnection] = []

        async def connect() -> None:
            opened.append(await self._connector.connect(pool.remove))

        try:
            await wait_for(connect(), limit_s)
            connection = opened.pop()
        except (asyncio.TimeoutError, TimeoutError):
            error: APIConnectionError = connect_timeout_error(request, self._base_url, limit_s, hint)
        except ssl.SSLCertVerificationError as cause:
            error = connection_error(
                request, self._base_url, cause, f"{hint}; {describe_trust_store()}", may_have_been_sent=False
            )
        except (OSError, UnicodeError) as cause:
            error = connection_error(request, self._base_url, cause, hint, may_have_been_sent=False)
        else:
            pool.add(connection)
            return connection
        finally:
            # A cancellation or the end of the time may come together with the connection.
            for unused in opened:
                unused.abort()
        raise error

    def _open(self, traffic: Traffic) -> ConnectionPool:
        if not self._pools:
            weakref.finalize(self, _close_at_exit, self._pools, asyncio.get_running_loop(), os.getpid())
        pool = self._pools[traffic] = ConnectionPool(self._max_connections[traffic])
        return pool


async def _close(pools: dict[Traffic, ConnectionPool]) -> None:
    # close() and the end of the program may run this at once: the first to return must have closed everything.
    for pool in list(pools.values()):
        pool.close()
    for pool in list(pools.values()):
        await pool.all_closed.wait()
    pools.clear()


def _close_at_exit(pools: dict[Traffic, ConnectionPool], loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Close the connections of a transport that is dropped, or open at the end of the program."""
    if not pools or not loop.is_running() or pid != os.getpid():
        return
    closing = asyncio.run_coroutine_threadsafe(_close(pools), loop)
    # A finalizer may run on any thread; the thread of the loop must not wait for itself.
    if not LOOP.is_current_thread:
        wait([closing], FINALIZE_TIMEOUT_S)
