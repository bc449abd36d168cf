"""The embedded server, or another handler of requests, as a server of aiohttp."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from tinkerwire._server.app import EmbeddedServer
from tinkerwire._server.emulation.fault_injection import ConnectionDropped
from tinkerwire._server.http.allowed_hosts import AllowedHosts
from tinkerwire._server.http.body_memory import BodyMemory
from tinkerwire._server.http.body_reading import receive_body
from tinkerwire._server.http.content_encoding import MAX_BODY_BYTES
from tinkerwire._server.http.responses import HttpError
from tinkerwire_base.call import WireRequest, WireResponse


class RequestHandler(Protocol):
    """An object that answers requests, such as an embedded server."""

    async def handle(self, request: WireRequest) -> WireResponse:
        """Return the response to one request; ConnectionDropped closes the connection without one."""
        ...


IDLE_CONNECTION_S = 300.0
"""Time for which a connection without requests is kept."""
FIRST_REQUEST_S = 60.0
"""Time in which the first headers must arrive on a connection."""
BACKLOG = 4096
"""Connections that wait to be accepted: clients open one for each of thousands of samples at once."""
_CONTENT = b'{"detail":"too many connections are open; retry, or raise the limit of open files with ulimit -n"}'
TOO_MANY_CONNECTIONS = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_CONTENT), _CONTENT)
)
"""Response to a connection beyond the maximum."""


class _Server(web.Server):
    """A server that closes connections without a request, and those beyond a maximum."""

    def __init__(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], max_connections: int | None
    ) -> None:
        super().__init__(
            handler,
            handler_cancellation=True,
            access_log=None,
            logger=_create_logger(),
            keepalive_timeout=IDLE_CONNECTION_S,
            # The handler checks the encodings that its wire version supports.
            auto_decompress=False,
        )
        self._max_connections = max_connections
        self._open = 0
        self._silent: dict[object, asyncio.TimerHandle] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Expect a request on a new connection."""
        super().connection_made(handler, transport)
        self._open += 1
        if self._max_connections is not None and self._open > self._max_connections:
            transport.write(TOO_MANY_CONNECTIONS)
            transport.close()
            return
        timer = asyncio.get_running_loop().call_later(FIRST_REQUEST_S, handler.force_close)
        self._silent[handler] = timer

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        self._open -= 1
        self.observe_request(handler)
        super().connection_lost(handler, exc)

    def observe_request(self, handler: object) -> None:
        """Note that a request has arrived on a connection."""
        timer = self._silent.pop(handler, None)
        if timer is not None:
            timer.cancel()


def create_server(
    server: RequestHandler, allowed_hosts: AllowedHosts | None = None, max_connections: int | None = None
) -> web.Server:
    """Create an aiohttp server that passes every request to the server; call it on the event loop that serves.

    Args:
        server: answers the requests.
        allowed_hosts: allowed hosts; by default loopback names and the address at which a connection arrived.
        max_connections: connections at once; further ones get status 503.
    """
    allowed = allowed_hosts or AllowedHosts()
    memory = BodyMemory()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        listener.observe_request(request.protocol)
        with memory.hold() as take:
            return await handle_held(request, take)

    async def handle_held(request: web.BaseRequest, take: Callable[[int], None]) -> web.StreamResponse:
        try:
            allowed.check(
                request.headers.getall("Host", []), request.headers.getall("Origin", []), _own_address(request)
            )
            await _continue(request)
            content = await receive_body(request.content, request.content_length, take)
        except HttpError as error:
            return _error_response(error)
        except web.RequestPayloadError as error:
            return _error_response(HttpError(400, f"the body cannot be read: {' '.join(str(error).split())}"))
        headers: dict[str, str] = {}
        for name, value in request.headers.items():
            headers.setdefault(name.lower(), value)
        wire = WireRequest(
            method=request.method,
            path=request.rel_url.raw_path,
            query=tuple(request.rel_url.query.items()) if request.query_string else (),
            headers=headers,
            content=content,
        )
        try:
            response = await server.handle(wire)
        except ConnectionDropped:
            if request.transport is not None:
                request.transport.abort()
            # aiohttp requires a response; the connection is closed already.
            return web.Response(status=500)
        return web.Response(status=response.status, headers=dict(response.headers), body=response.content)

    listener = _Server(handle, max_connections)
    return listener


async def _continue(request: web.BaseRequest) -> None:
    """Ask a client that waits before its body to send it; curl waits for a second before a large one."""
    waits = request.headers.get("Expect", "").lower() == "100-continue" and request.version == HttpVersion11
    if waits and not request.content.is_eof() and (request.content_length or 0) <= MAX_BODY_BYTES:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # The response itself has not begun.
        request.writer.output_size = 0


def _own_address(request: web.BaseRequest) -> str | None:
    """Return the address of the server's end of a request's connection."""
    name = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return name[0] if isinstance(name, tuple) else None


def _error_response(error: HttpError) -> web.Response:
    """Create the response to a request whose body was not read completely, and close the connection."""
    response = web.json_response({"detail": error.detail}, status=error.status, headers=error.headers)
    # The start of the next request in the stream is unknown.
    response.force_close()
    return response


async def serve(
    server: EmbeddedServer,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    allowed_hosts: Collection[str] = (),
    ready: Callable[[str], None] | None = None,
    until: asyncio.Event | None = None,
) -> None:
    """Serve until ``until`` is set or, without it, until SIGINT or SIGTERM; then close the server.

    Args:
        server: the server.
        host: the address to listen on.
        port: the port to listen on; 0 selects a free port.
        allowed_hosts: further allowed values of Host and Origin, beside ``host``.
        ready: receives the URL once the server accepts requests.
        until: event that ends the server.

    Raises:
        OSError: the server cannot listen on the port.
        ValueError: an allowed host is not a host name or address.
    """
    # The server closes first, because it ends the requests that wait for results.
    await serve_handler(
        server,
        lambda: asyncio.to_thread(server.close, is_resumed=True),
        host,
        port,
        allowed_hosts=AllowedHosts([*allowed_hosts, *([host] if host else [])]),
        ready=ready,
        until=until,
    )


async def serve_handler(
    handler: RequestHandler,
    stop: Callable[[], Awaitable[object]],
    host: str,
    port: int,
    *,
    allowed_hosts: AllowedHosts,
    ready: Callable[[str], None] | None = None,
    until: asyncio.Event | None = None,
    drain_s: float = 2.0,
    shares_port: bool = False,
    max_connections: int | None = None,
) -> None:
    """Serve until ``until`` is set or, without it, until SIGINT or SIGTERM.

    Args:
        handler: answers the requests.
        stop: called at the end, before open connections are closed.
        host: the address to listen on.
        port: the port to listen on; 0 selects a free port.
        allowed_hosts: allowed values of Host and Origin.
        ready: receives the URL once requests are accepted.
        until: event that ends the serving.
        drain_s: seconds that requests may take to finish after ``stop``.
        shares_port: other processes may listen on the same port.
        max_connections: connections at once; further ones get status 503. By default, the system has its limit.

    Raises:
        OSError: the port cannot be used.
    """
    runner = web.ServerRunner(create_server(handler, allowed_hosts, max_connections), shutdown_timeout=drain_s)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, backlog=BACKLOG, reuse_address=True, reuse_port=shares_port or None)
        await site.start()
        if ready is not None:
            ready(f"http://{_format_host(host)}:{runner.addresses[0][1]}")
        await (until or _stop_signal()).wait()
    finally:
        await stop()
        await runner.cleanup()


def _create_logger() -> logging.Logger:
    """Return aiohttp's logger without its reports of malformed requests, which quote headers, and so keys."""
    logger = logging.getLogger(f"{__name__}.http")
    if not logger.filters:
        logger.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))
    return logger


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    return stop


def _format_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
