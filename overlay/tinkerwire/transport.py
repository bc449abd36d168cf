"""How bytes reach a server: a protocol of one method, over aiohttp, or over an httpx client of the user's own.

Foreign errors end here: what leaves is an answer, APIConnectionError or APITimeoutError.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Protocol

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APITimeoutError, RequestInfo

from .backpressure import CONNECTIONS, Traffic

if TYPE_CHECKING:
    import aiohttp
    import httpx

CONNECT_TIMEOUT_S = 5.0


class Transport(Protocol):
    """Sends one request and brings its answer; used on one event loop."""

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """The answer, whatever its status.

        Raises:
            APITimeoutError: none within ``timeout_s`` seconds.
            APIConnectionError: none at all.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class AiohttpTransport:
    """The default: connections of its own for every traffic class, kept alive.

    The system's certificate store, SSL_CERT_FILE and the proxy variables are honoured. Redirects are not
    followed: they would carry the API key to wherever they point.
    """

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._sessions: dict[Traffic, aiohttp.ClientSession] = {}

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        import aiohttp  # noqa: PLC0415  (a tenth of a second that importing the client should not cost)

        session = self._sessions.get(traffic) or self._open(traffic)
        url = self._base_url + request.path
        try:
            async with session.request(
                request.method,
                url,
                params=request.query or None,
                data=request.content,
                headers=request.headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_read=timeout_s, sock_connect=CONNECT_TIMEOUT_S),
                allow_redirects=False,
            ) as answer:
                content = await answer.read()
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return WireResponse(status=answer.status, headers=headers, content=content)
        except (asyncio.TimeoutError, aiohttp.ServerTimeoutError) as fault:
            raise timeout_error(request, url, timeout_s) from fault
        except (aiohttp.ClientError, OSError) as fault:
            raise connection_error(request, url, fault) from fault

    async def close(self) -> None:
        """See :class:`Transport`."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()

    def _open(self, traffic: Traffic) -> aiohttp.ClientSession:
        import aiohttp  # noqa: PLC0415

        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS[traffic], keepalive_timeout=60, ttl_dns_cache=60),
            trust_env=True,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "User-Agent", "Content-Type"),
        )
        self._sessions[traffic] = session
        return session


class HttpxTransport:
    """Through an ``httpx.AsyncClient`` that the user made (proxies, mounts, mocks); it is not closed here."""

    def __init__(self, client: httpx.AsyncClient, base_url: str) -> None:
        self._client = client
        self._base_url = base_url

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        import httpx  # noqa: PLC0415

        url = self._base_url + request.path
        try:
            answer = await self._client.request(
                request.method,
                url,
                params=request.query or None,
                content=request.content,
                headers=dict(request.headers),
                timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
                follow_redirects=False,
            )
        except httpx.TimeoutException as fault:
            raise timeout_error(request, url, timeout_s) from fault
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as fault:
            raise connection_error(request, url, fault) from fault
        return WireResponse(status=answer.status_code, headers=dict(answer.headers), content=answer.content)

    async def close(self) -> None:
        """Leave the user's client to the user."""


def timeout_error(request: WireRequest, url: str, timeout_s: float) -> APITimeoutError:
    """The error for a request without an answer in time."""
    return APITimeoutError(
        f"{request.method} {url}: no answer within {timeout_s:g} s",
        request=RequestInfo(method=request.method, url=url),
    )


def connection_error(request: WireRequest, url: str, fault: Exception) -> APIConnectionError:
    """The error for a request that brought no answer; its text names the cause."""
    cause = str(fault) or type(fault).__name__
    return APIConnectionError(f"{request.method} {url}: {cause}", request=RequestInfo(method=request.method, url=url))
