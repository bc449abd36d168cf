"""An embedded server whose sessions expire soon."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tinkerwire._server.aiohttp_app import serve
from tinkerwire.local import EmbeddedServer

SESSION_TTL_S = 20.0
"""Time to live of a session, twice the interval of heartbeats."""


@contextmanager
def run_short_session_server() -> Iterator[str]:
    """Run the server for the block, on a thread; yield its URL."""
    urls: queue.Queue[str] = queue.Queue()
    loop = asyncio.new_event_loop()
    until = asyncio.Event()
    server = EmbeddedServer(wire_version="0.38.0", session_ttl_s=SESSION_TTL_S)
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve(server, ready=urls.put, until=until)))
    thread.start()
    try:
        yield urls.get(timeout=30)
    finally:
        loop.call_soon_threadsafe(until.set)
        thread.join()
        loop.close()
