"""The embedded server over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

from aiohttp import web

from tinkerwire.local.answers import Refusal
from tinkerwire.local.content import LARGEST_BODY_BYTES, too_large
from tinkerwire.local.misbehaviour import ConnectionDropped
from tinkerwire.local.server import EmbeddedServer
from tinkerwire_base.call import WireRequest


def application(server: EmbeddedServer) -> web.Application:
    """The server as an aiohttp application; it answers every path."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            content = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _unread(too_large())
        except web.RequestPayloadError as fault:
            return _unread(Refusal(400, f"the body cannot be read: {' '.join(str(fault).split())}"))
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


def _unread(refusal: Refusal) -> web.Response:
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
    ready: Callable[[str], None] | None = None,
    until: asyncio.Event | None = None,
) -> None:
    """Serve until ``until`` is set, or, without it, until SIGINT or SIGTERM; then close the server.

    Args:
        port: 0 for any free one.
        ready: is told the address once requests are taken.

    Raises:
        OSError: the port cannot be had.
    """
    runner = web.AppRunner(
        application(server),
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
