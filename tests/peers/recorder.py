"""A proxy between client and server that keeps every request with its answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
from aiohttp import web

# Headers that one hop says to the next and that must not be passed on, and those that a proxy sets itself.
OWN_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "content-encoding"}
Record = dict[str, Any]


@contextlib.contextmanager
def recorded(target: str) -> Iterator[tuple[str, list[Record]]]:
    """Run the proxy in front of `target`; yield its base URL and the growing list of records."""
    records: list[Record] = []
    ready = threading.Event()
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    urls: list[str] = []

    async def serve() -> None:
        # A connection for each request: the server may close one that it has just answered 500 on.
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as session:
            app = web.Application(client_max_size=1 << 30)
            app["session"], app["target"], app["records"] = session, target, records
            app.router.add_route("*", "/{path:.*}", _pass_on)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
            end = asyncio.Event()
            stop.append((asyncio.get_running_loop(), end))
            ready.set()
            await end.wait()
            await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield urls[0], records
    finally:
        loop, end = stop[0]
        loop.call_soon_threadsafe(end.set)
        thread.join(10)


async def _pass_on(request: web.Request) -> web.Response:
    body = await request.read()
    record: Record = {
        "start": time.time(),
        "method": request.method,
        "path": request.path_qs,
        "headers": dict(request.headers),
        "body": _readable(body),
    }
    request.app["records"].append(record)
    headers = {k: v for k, v in request.headers.items() if k.lower() not in OWN_HEADERS}
    url = request.app["target"] + request.raw_path
    call = request.app["session"].request(request.method, url, data=body, headers=headers, allow_redirects=False)
    try:
        async with call as answer:
            content = await answer.read()
    except aiohttp.ClientError as error:
        record.update(status=502, answer=f"{type(error).__name__}: {error}")
        return web.json_response({"detail": f"the recorder got no answer: {error}"}, status=502)
    record.update(
        status=answer.status,
        seconds=round(time.time() - record["start"], 3),
        answer_headers=dict(answer.headers),
        answer=_readable(content),
    )
    kept = {k: v for k, v in answer.headers.items() if k.lower() not in OWN_HEADERS}
    return web.Response(status=answer.status, body=content, headers=kept)


def _readable(content: bytes) -> Any:
    """Return JSON as it is, other text as text, and of bytes the length."""
    try:
        return json.loads(content) if content else None
    except ValueError:
        pass
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"<{len(content)} bytes>"
