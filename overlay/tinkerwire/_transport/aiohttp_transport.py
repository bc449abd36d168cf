"""The default transport, over aiohttp."""

from __future__ import annotations

import asyncio
import os
import ssl
import weakref
import zlib
from collections.abc import Iterable
from concurrent.futures import wait
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import attrs

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APIError

from .._futures.event_loop import LOOP
from .backpressure import Traffic, count_connections
from .base import ConnectionSlot, remaining_seconds
from .errors import (
    CONNECT_TIMEOUT_S,
    connect_timeout_error,
    connection_error,
    describe_trust_store,
    timeout_error,
)
from .poll_connections import PollConnections
from .proxy import environment_proxy
from .response_body import ACCEPTED, read_body

if TYPE_CHECKING:
    import aiohttp

FINALIZE_TIMEOUT_S = 1.0
"""Time that the end of the program waits for connections to close."""


@attrs.frozen
class _Pool:
    session: aiohttp.ClientSession
    free: asyncio.Semaphore
    """Free connections; a wait for one counts for the deadline of the operation, not for the request's timeout."""


class AiohttpTransport:
    """The default transport, with separate connections for every traffic class, which are kept alive.

    It uses the system's certificate store, SSL_CERT_FILE and the proxy variables, but not ``~/.netrc``. It does not
    follow redirects, which could send the API key to any host.

    Raises:
        ValueError: the environment names an unsupported kind of proxy.
    """

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._proxy = environment_proxy(base_url)
        self._trusted: ssl.SSLContext | None = None
        self._pools: dict[Traffic, _Pool] = {}
        sample_polls, self._max_connections = count_connections()
        self.poll_connections = PollConnections(sample_polls)

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        import aiohttp  # noqa: PLC0415  (importing it takes a tenth of a second)

        pool = self._pools.get(traffic) or self._open(traffic)
        try:
            async with (
                ConnectionSlot(pool.free, request, self._base_url),
                pool.session.request(
                    request.method,
                    self._base_url + request.path,
                    params=request.query or None,
                    data=_body(request.content),
                    headers=request.headers,
                    timeout=aiohttp.ClientTimeout(total=remaining_seconds(timeout_s), connect=CONNECT_TIMEOUT_S),
                    proxy=self._proxy,
                    allow_redirects=False,
                ) as response,
            ):
                url, encoding = self._base_url + request.path, response.headers.get("content-encoding", "")
                content = await read_body(
                    request, url, response.status, encoding, response.content_length, response.content.iter_any()
                )
                headers = {name.lower(): value for name, value in response.headers.items()}
                return WireResponse(status=response.status, headers=headers, content=content)
        except APIError:  # raised by this client; some are TimeoutErrors
            raise
        except aiohttp.ConnectionTimeoutError:
            error: APIConnectionError = connect_timeout_error(request, self._base_url)
        except (asyncio.TimeoutError, TimeoutError):  # two classes before Python 3.11
            error = timeout_error(request, self._base_url, timeout_s)
        except aiohttp.ClientConnectorCertificateError as cause:
            error = connection_error(
                request, self._base_url, cause, f"; {describe_trust_store()}", may_have_been_sent=False
            )
        except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as cause:
            error = connection_error(request, self._base_url, cause, may_have_been_sent=False)
        except (
            aiohttp.ClientError,
            zlib.error,
            OSError,
            UnicodeError,
        ) as cause:  # invalid host names
            error = connection_error(request, self._base_url, cause)
        raise error

    async def close(self) -> None:
        """See :class:`Transport`."""
        await _close(self._pools)

    def _open(self, traffic: Traffic) -> _Pool:
        import aiohttp  # noqa: PLC0415

        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60, ttl_dns_cache=60, ssl=self._trust()),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"accept-encoding": ACCEPTED},
            request_class=_request_class(),
        )
        # aiohttp resends a GET when a kept connection breaks; here the retry policy decides.
        session._retry_connection = False
        # Load the codec on this thread, which a fork waits for; otherwise the threads of the resolver load it.
        "".encode("idna")
        if not self._pools:
            weakref.finalize(self, _close_at_exit, self._pools, asyncio.get_running_loop(), os.getpid())
        pool = self._pools[traffic] = _Pool(session, asyncio.Semaphore(self._max_connections[traffic]))
        return pool

    def _trust(self) -> ssl.SSLContext | bool:
        # aiohttp's own context has the environment from the time of its import.
        if urlsplit(self._base_url).scheme != "https":
            return True
        if self._trusted is None:
            self._trusted = ssl.create_default_context()
        return self._trusted


async def _close(pools: dict[Traffic, _Pool]) -> None:
    # close() and the end of the program may run this at once: the first to return must have closed everything.
    for traffic, pool in list(pools.items()):
        await pool.session.close()
        pools.pop(traffic, None)


def _close_at_exit(pools: dict[Traffic, _Pool], loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Close the connections of a transport that is dropped, or open at the end of the program."""
    if not pools or not loop.is_running() or pid != os.getpid():
        return
    closing = asyncio.run_coroutine_threadsafe(_close(pools), loop)
    # A finalizer may run on any thread; the thread of the loop must not wait for itself.
    if not LOOP.is_current_thread:
        wait([closing], FINALIZE_TIMEOUT_S)


@cache
def _request_class() -> type[aiohttp.ClientRequest]:
    import aiohttp  # noqa: PLC0415

    class Request(aiohttp.ClientRequest):
        """Request without aiohttp's own headers; naming them in the session costs two copies of all headers."""

        def update_auto_headers(self, skip_auto_headers: Iterable[str] | None) -> None:
            """Add no header."""

    return Request


def _body(content: bytes | None) -> object:
    """Return the content of a request in the form that aiohttp sends with the least work."""
    if content is None:
        return None
    from aiohttp.payload import BytesPayload, Payload  # noqa: PLC0415

    # The initializer of BytesPayload would warn of large bodies; sending in pieces would copy the body once more.
    body = BytesPayload.__new__(BytesPayload)
    Payload.__init__(body, content, content_type="application/octet-stream")
    body._size = len(content)
    return body
