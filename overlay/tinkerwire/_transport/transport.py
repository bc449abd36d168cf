"""How bytes reach a server: a protocol of one method, over aiohttp, or over an httpx client of the user's own.

Foreign errors end here: what leaves is an answer, APIConnectionError or APITimeoutError. Their
``__cause__`` is a copy of the system's error behind it, such as ConnectionRefusedError or gaierror, and not the
library's own, which may hold the request's headers, with the API key among them.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import weakref
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import wait
from contextlib import asynccontextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

import attrs

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APIError, APITimeoutError, RequestInfo

from .._futures.deadline import library_seconds, time_left
from .._futures.event_loop import LOOP
from .._futures.timeout import wait_for
from .address import is_loopback
from .backpressure import CONNECTIONS, Traffic
from .response_body import ACCEPTED, read_body

if TYPE_CHECKING:
    import aiohttp
    import httpx

E = TypeVar("E", bound=APIConnectionError)
ABANDON_S = 1.0
CONNECT_TIMEOUT_S = 5.0
"""For looking up the name, connecting, and agreeing on a key together."""
LARGE_BODY_BYTES = 1 << 20
"""aiohttp warns of plain bytes from this size on."""


class Transport(Protocol):
    """Sends one request and brings its answer; used on one event loop."""

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """The answer, whatever its status.

        The time begins once there is a free connection; the wait for one ends with the operation's deadline.

        Raises:
            APITimeoutError: it was not here in full within ``timeout_s`` seconds, more than 0.
            APIConnectionError: there was none.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


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
                _place(pool.free, request, self._base_url),
                pool.session.request(
                    request.method,
                    self._base_url + request.path,
                    params=request.query or None,
                    data=_body(request.content),
                    headers=request.headers,
                    timeout=aiohttp.ClientTimeout(total=_seconds(timeout_s), connect=CONNECT_TIMEOUT_S),
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
        except aiohttp.ClientConnectorCertificateError as fault:
            error = connection_error(request, self._base_url, fault, f"; {whom_is_trusted()}", may_be_sent=False)
        except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as fault:
            error = connection_error(request, self._base_url, fault, may_be_sent=False)
        except (
            aiohttp.ClientError,
            zlib.error,
            OSError,
            UnicodeError,
        ) as fault:  # the host name is odd
            error = connection_error(request, self._base_url, fault)
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
            weakref.finalize(self, _abandon, self._pools, asyncio.get_running_loop(), os.getpid())
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


def _abandon(pools: dict[Traffic, _Pool], loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Close what a client leaves that nobody closed, dropped or open at the end of the program."""
    if not pools or not loop.is_running() or pid != os.getpid():
        return
    closing = asyncio.run_coroutine_threadsafe(_close(pools), loop)
    # A finalizer may run on any thread; the loop's own must not wait for itself.
    if not LOOP.is_current_thread:
        wait([closing], ABANDON_S)


class HttpxTransport:
    """Through an ``httpx.AsyncClient`` that the user made (proxies, mounts, mocks), and closed with this.

    All traffic shares its connections: give it ``limits=httpx.Limits(max_connections=None)`` for large work.
    """

    def __init__(self, client: httpx.AsyncClient, base_url: str) -> None:
        self._client = client
        self._base_url = base_url
        self._free = {traffic: asyncio.Semaphore(number) for traffic, number in CONNECTIONS.items()}

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        import httpx  # noqa: PLC0415

        try:
            async with _place(self._free[traffic], request, self._base_url):
                seconds = _seconds(timeout_s)
                # httpx limits each step only, not the whole.
                return await wait_for(
                    self._request(request, httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_S)), seconds
                )
        except APIError:  # of this client: some are TimeoutErrors, too
            raise
        except httpx.ConnectTimeout:
            error: APIConnectionError = connect_timeout_error(request, self._base_url)
        except (httpx.TimeoutException, asyncio.TimeoutError, TimeoutError):
            error = timeout_error(request, self._base_url, timeout_s)
        except httpx.ConnectError as fault:
            error = connection_error(request, self._base_url, fault, may_be_sent=False)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, zlib.error, OSError, UnicodeError) as fault:
            error = connection_error(request, self._base_url, fault)
        raise error

    async def close(self) -> None:
        """Close the user's client, too: its connections are of the loop that this one runs on, and end with it."""
        await self._client.aclose()

    async def _request(self, request: WireRequest, limits: httpx.Timeout) -> WireResponse:
        url = self._base_url + request.path
        async with self._client.stream(
            request.method,
            url,
            params=request.query or None,
            content=request.content,
            headers={"accept-encoding": ACCEPTED, **request.headers},
            timeout=limits,
            follow_redirects=False,
        ) as answer:
            status, encoding = answer.status_code, answer.headers.get("content-encoding", "")
            if answer.is_stream_consumed:
                # By a hook of the user's, so that it is in memory already.
                content = await answer.aread()
            else:
                length = answer.headers.get("content-length", "")
                chunks = answer.aiter_raw()
                content = await read_body(
                    request, url, status, encoding, int(length) if length.isdigit() else None, chunks
                )
            return WireResponse(status=status, headers=dict(answer.headers), content=content)


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


def _seconds(timeout_s: float) -> float | None:
    """Return the time limit of a request that starts now, as the libraries take it."""
    return library_seconds(min(timeout_s, time_left()))


@asynccontextmanager
async def _place(free: asyncio.Semaphore, request: WireRequest, base_url: str) -> AsyncIterator[None]:
    """Hold one of the places of a semaphore; wait for it no longer than the operation may take."""
    if free.locked():
        taking = asyncio.ensure_future(free.acquire())
        is_in_time = False
        try:
            await asyncio.wait({taking}, timeout=library_seconds(time_left()))
            is_in_time = taking.done()
        finally:
            if not is_in_time:
                taking.cancel()
                # It may get its place in the very moment in which it is given up.
                taking.add_done_callback(lambda task: None if task.cancelled() else free.release())
        if not is_in_time:
            raise no_time_error(request, base_url, "no connection was free")
    else:
        await free.acquire()
    try:
        yield
    finally:
        free.release()


def environment_proxy(base_url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name for an address; none for this machine's own.

    Raises:
        ValueError: one of a kind that is not spoken, or that is no address.
    """
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415  (it loads half of the mail and web modules)

    parts = urlsplit(base_url)
    host, proxies = parts.hostname or "", getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    # A key may go in the clear to this machine because it does not leave it; through a proxy it would.
    if (
        not proxy
        or is_loopback(base_url)
        or proxy_bypass(host)
        or proxy_bypass(parts.netloc)
        or _is_in(proxies.get("no"), host)
    ):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    name, found = f"{parts.scheme.upper()}_PROXY or ALL_PROXY", urlsplit(proxy)
    if found.scheme not in ("http", "https"):
        raise ValueError(
            f"{name}: {found.scheme} proxies are not spoken; name an http one, put {host} into NO_PROXY, or give "
            "http_client=httpx.AsyncClient(proxy=...), which speaks more with httpx[socks]"
        )
    if not _is_address(found):
        # Not shown, as it may hold a password.
        raise ValueError(f"{name}: not an address; in a user or password, write # as %23, / as %2F and so on")
    return proxy


def _is_in(ranges: str | None, host: str) -> bool:
    """Whether a host is an address in one of the ranges among the entries of NO_PROXY, as in 10.0.0.0/8."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    for entry in (ranges or "").split(","):
        try:
            if "/" in entry and address in ip_network(entry.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False


def _is_address(parts: SplitResult) -> bool:
    try:
        return bool(parts.hostname) and parts.port is not False and not parts.fragment and not parts.query
    except ValueError:
        return False


def whom_is_trusted() -> str:
    """Which certificates are trusted, and how to trust others."""
    named = os.environ.get("SSL_CERT_FILE")
    if not named:
        return "trusted is the system's certificate store; SSL_CERT_FILE names a file of certificates in its place"
    return f"trusted is SSL_CERT_FILE={named}" + ("" if Path(named).is_file() else ", a file that is not there")


def timeout_error(request: WireRequest, base_url: str, timeout_s: float) -> APITimeoutError:
    """The error for a request without an answer in time."""
    return _error(APITimeoutError, request, base_url, f"no answer within {timeout_s:g} s", may_be_sent=True)


def no_time_error(request: WireRequest, base_url: str, why: str = "no time was left to send it") -> APITimeoutError:
    """Make the error for a request that was not sent before the deadline of its operation."""
    return _error(APITimeoutError, request, base_url, why, may_be_sent=False)


def connect_timeout_error(request: WireRequest, base_url: str) -> APITimeoutError:
    """The error for a server that cannot be reached in time."""
    return _error(
        APITimeoutError, request, base_url, f"no connection within {CONNECT_TIMEOUT_S:g} s", may_be_sent=False
    )


def connection_error(
    request: WireRequest, base_url: str, fault: Exception, way_out: str = "", *, may_be_sent: bool = True
) -> APIConnectionError:
    """The error for a request that brought no answer; its text names the cause."""
    # The address of a proxy may stand there, with its password.
    cause = re.sub(r"://[^/\s]*@", "://", str(fault))
    what = f"{type(fault).__name__}: {cause}".removesuffix(": ")
    error = _error(APIConnectionError, request, base_url, what + way_out, may_be_sent=may_be_sent)
    error.__cause__ = _plain_cause(fault) or ConnectionError(what)
    return error


def _plain_cause(error: BaseException) -> OSError | None:
    """Return a copy of the system's own error behind one of a library's, whose parts and frames may hold headers."""
    seen: list[BaseException] = []
    found: OSError | None = None
    each: BaseException | None = error
    while each is not None and each not in seen:
        seen.append(each)
        system = getattr(each, "os_error", each)
        if isinstance(system, OSError) and type(system).__module__ in ("builtins", "socket", "ssl"):
            parts = [re.sub(r"://[^/\s]*@", "://", part) if isinstance(part, str) else part for part in system.args[:2]]
            found = type(system)(*parts)
        each = each.__cause__ or each.__context__
    return found


def _error(kind: type[E], request: WireRequest, base_url: str, what: str, *, may_be_sent: bool) -> E:
    url = base_url + request.path
    info = RequestInfo(method=request.method, url=url)
    # Without a connection the server cannot have taken the request up: its sequence number is free again.
    return kind(info, f"{request.method} {url}: {what}", may_be_sent=may_be_sent)
