"""The embedded server over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Collection

from aiohttp import web

from tinkerwire._server.app import EmbeddedServer
from tinkerwire._server.emulation.fault_injection import ConnectionDropped
from tinkerwire._server.http.allowed_hosts import AllowedHosts
from tinkerwire._server.http.content_encoding import LARGEST_BODY_BYTES, too_large
from tinkerwire._server.http.responses import HttpError
from tinkerwire_base.call import WireRequest


def application(server: EmbeddedServer, allowed_hosts: AllowedHosts | None = None) -> web.Application:
    """Make an aiohttp application of the server; it answers every path, for the allowed hosts.

    Args:
        allowed_hosts: by default loopback names and the address at which a connection arrived.
    """
    allowed = allowed_hosts or AllowedHosts()

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            allowed.check(
                request.headers.getall("Host", []), request.headers.getall("Origin", []), _own_address(request)
            )
            content = await request.read()
        except HttpError as refusal:
            return _unread(refusal)
        except web.HTTPRequestEntityTooLarge:
            return _unread(too_large())
        except web.RequestPayloadError as error:
            return _unread(HttpError(400, f"the body cannot be read: {' '.join(str(error).split())}"))
        wire = WireRequest(
            method=request.method,
            path=request.rel_url.raw_path,
            query=tuple(request.rel_url.query.items()),
            headers=dict(request.headers),
            content=content,
        )
        try:
            response = await server.handle(wire)
        except ConnectionDropped:
            if request.transport is not None:
                request.transport.abort()
            # Goes nowhere: the connection is gone.
            return web.Response(status=500)
        return web.Response(status=response.status, headers=dict(response.headers), body=response.content)

    app = web.Application(client_max_size=LARGEST_BODY_BYTES)
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def _own_address(request: web.Request) -> str | None:
    """Return the address of the server's end of a request's connection."""
    name = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return name[0] if isinstance(name, tuple) else None


def _unread(refusal: HttpError) -> web.Response:
    """The answer to a request whose body was not read to its end."""
    response = web.json_response({"detail": refusal.detail}, status=refusal.status)
    # Where the next request starts is not known.
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
    """Serve until ``until`` is set, or, without it, until SIGINT or SIGTERM; then close the server.

    Args:
        port: 0 for any free one.
        allowed_hosts: further hosts, as requests name them in Host and pages in Origin; ``host`` is one already.
        ready: is told the address once requests are taken.

    Raises:
        OSError: the port cannot be had.
        ValueError: an allowed host is not a host name or address.
    """
    allowed = AllowedHosts([*allowed_hosts, *([host] if host else [])])
    runner = web.AppRunner(
        application(server, allowed),
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=2.0,
        # The server itself knows which encodings its wire version takes.
        auto_decompress=False,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, reuse_address=True)
        await site.start()
        if ready is not None:
            ready(f"http://{_bracketed(host)}:{runner.addresses[0][1]}")
        await (until or _stop_signal()).wait()
    finally:
        # First the server: it ends the requests that wait for results.
        await asyncio.to_thread(server.close)
        await runner.cleanup()


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    return stop


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
