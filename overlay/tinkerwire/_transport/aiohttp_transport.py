"""The default transport, over aiohttp."""

from __future__ import annotations

import asyncio
import os
import ssl
import weakref
import zlib
from concurrent.futures import wait
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import attrs

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APIError

from .._futures.event_loop import LOOP
from .backpressure import CONNECTIONS, Traffic
from .base import connection_slot, remaining_seconds
from .errors import (
    CONNECT_TIMEOUT_S,
    connect_timeout_error,
    connection_error,
    describe_trust_store,
    timeout_error,
)
from .proxy import environment_proxy
from .response_body import ACCEPTED, read_body

if TYPE_CHECKING:
    import aiohttp

FINALIZE_TIMEOUT_S = 1.0
"""Time that the end of the program waits for connections to close."""
LARGE_BODY_BYTES = 1 << 20
"""aiohttp warns of plain bytes from this size on."""


@attrs.frozen
class _Pool:
    session: aiohttp.ClientSession
    free: asyncio.Semaphore
    """Waiting for a connection is done here, so that it is no part of a request's time, only of its operation's."""


class AiohttpTransport:
    """The default: connections of its own for every traffic class, kept alive.

    The system's certificate store, SSL_CERT_FILE and the proxy variables are honoured, ``~/.netrc`` is not.
    Redirects are not followed: they would carry the API key to wherever they point.

    Raises:
        ValueError: the environment names a proxy of a kind that is not spoken.
    """

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._proxy = environment_proxy(base_url)
        self._trusted: ssl.SSLContext | None = None
        self._pools: dict[Traffic, _Pool] = {}

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        import aiohttp  # noqa: PLC0415  (a tenth of a second that importing the client should not cost)

        pool = self._pools.get(traffic) or self._open(traffic)
        try:
            async with (
                connection_slot(pool.free, request, self._base_url),
                pool.session.request(
                    request.method,
                    self._base_url + request.path,
                    params=request.query or None,
                    data=_body(request.content),
                    headers=request.headers,
                    timeout=aiohttp.ClientTimeout(total=remaining_seconds(timeout_s), connect=CONNECT_TIMEOUT_S),
                    proxy=self._proxy,
                    allow_redirects=False,
                ) as answer,
            ):
                url, encoding = self._base_url + request.path, answer.headers.get("content-encoding", "")
                content = await read_body(
                    request, url, answer.status, encoding, answer.content_length, answer.content.iter_any()
                )
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return WireResponse(status=answer.status, headers=headers, content=content)
        except APIError:  # of this client: some are TimeoutErrors, too
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
        ) as cause:  # the host name is odd
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
            skip_auto_headers=("Accept", "User-Agent", "Content-Type"),
        )
        # aiohttp sends a GET again by itself when a kept connection breaks; that is the retry policy's business.
        session._retry_connection = False
        # On this thread, which stands still during a fork. Otherwise the resolver's threads load the codec.
        "".encode("idna")
        if not self._pools:
            weakref.finalize(self, _close_at_exit, self._pools, asyncio.get_running_loop(), os.getpid())
        pool = self._pools[traffic] = _Pool(session, asyncio.Semaphore(CONNECTIONS[traffic]))
        return pool

    def _trust(self) -> ssl.SSLContext | bool:
        # aiohttp has one of its own, from the environment as it was when that was imported.
        if urlsplit(self._base_url).scheme != "https":
            return True
        if self._trusted is None:
            self._trusted = ssl.create_default_context()
        return self._trusted


async def _close(pools: dict[Traffic, _Pool]) -> None:
    # Close and the end of the program may come here at once: whoever is done first must have closed everything.
    for traffic, pool in list(pools.items()):
        await pool.session.close()
        pools.pop(traffic, None)


def _close_at_exit(pools: dict[Traffic, _Pool], loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Close what a client leaves that nobody closed, dropped or open at the end of the program."""
    if not pools or not loop.is_running() or pid != os.getpid():
        return
    closing = asyncio.run_coroutine_threadsafe(_close(pools), loop)
    # A finalizer may run on any thread; the loop's own must not wait for itself.
    if not LOOP.is_current_thread:
        wait([closing], FINALIZE_TIMEOUT_S)


def _body(content: bytes | None) -> object:
    """Return what aiohttp sends for the content of a request; it warns of large bodies that are plain bytes."""
    if content is None or len(content) < LARGE_BODY_BYTES:
        return content
    from aiohttp.payload import BytesPayload, Payload  # noqa: PLC0415

    # Not by the initializer of BytesPayload, which gives the warning; pieces of a body would be copied once more.
    body = BytesPayload.__new__(BytesPayload)
    Payload.__init__(body, content, content_type="application/octet-stream")
    body._size = len(content)
    return body
