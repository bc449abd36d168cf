"""Proxy on a socket that injects failures of the network and of servers, reproducible by a seed."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

STALL_S = 2.0
"""Seconds for which a stalled response is held."""
LATE_S = 0.5
"""Seconds after which a request is sent a second time."""
STATUSES = (408, 409, 429, 500, 502, 503, 504)
CONFLICT = 409
CONFLICT_IS_FINAL = (b"retrieve_future", b"save_weights")
"""Requests for which a 409 means that the operation failed, or that the name of a checkpoint is used."""
KINDS = (
    "refused",
    "reset before",
    "reset after",
    "half body",
    "garbage",
    "stall",
    "duplicate",
    "late duplicate",
    "status before",
    "status after",
    "lost reply",
)
"""Kinds of failures; before and after the server has handled the request."""
BEFORE = frozenset({"refused", "reset before", "status before"})


class FailureProxy:
    """A proxy to one server.

    Args:
        target: URL of the server.
        share: share of the requests that meet a failure.
        seed: seed of the failures.
    """

    def __init__(self, target: str, share: float, seed: int) -> None:
        parts = urlsplit(target)
        self._address = parts.hostname, parts.port
        self._share = share
        self._rng = random.Random(seed)
        self._background: set[asyncio.Task[bytes | None]] = set()
        self.counts: Counter[str] = Counter()
        """Number of requests by kind of failure; ``none`` for those without one."""

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection."""
        # The end of the proxy cancels the connections.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._serve_request(reader, writer):
                pass
        writer.close()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether the connection stays open."""
        request = await _read_message(reader)
        has_failure = self._rng.random() < self._share
        kind = self._rng.choice(KINDS) if has_failure else "none"
        self.counts[kind] += 1
        if kind == "refused":
            # The client sees the same as from a closed port on the next connection.
            writer.transport.abort()
            return False
        response = None if kind in BEFORE else await self._forward(request)
        if kind == "duplicate":
            response = await self._forward(request)
        if kind == "late duplicate":
            task = asyncio.ensure_future(self._forward_late(request))
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        if kind.startswith("status"):
            response = _make_status_response(self._choose_status(request))
        if kind == "garbage":
            response = self._rng.randbytes(200)
        if kind == "half body" and response is not None:
            response = response[: -max(1, len(response.partition(b"\r\n\r\n")[2]) // 2)]
        if kind == "stall":
            await asyncio.sleep(STALL_S)
        if kind in ("reset before", "reset after"):
            writer.transport.abort()
            return False
        if response is None or kind in ("lost reply", "stall"):
            return False
        writer.write(response)
        await writer.drain()
        return kind not in ("garbage", "half body")

    def _choose_status(self, request: bytes) -> int:
        line = request.partition(b"\r\n")[0]
        is_final = any(name in line for name in CONFLICT_IS_FINAL)
        return self._rng.choice([status for status in STATUSES if not (is_final and status == CONFLICT)])

    async def _forward_late(self, request: bytes) -> bytes | None:
        await asyncio.sleep(LATE_S)
        return await self._forward(request)

    async def _forward(self, request: bytes) -> bytes | None:
        """Send a request on a new connection; return the response, None if the server is dead."""
        try:
            reader, writer = await asyncio.open_connection(*self._address)
        except OSError:
            return None
        try:
            writer.write(request)
            return await _read_message(reader)
        except (OSError, asyncio.IncompleteReadError):
            return None
        finally:
            writer.close()


async def _read_message(reader: asyncio.StreamReader) -> bytes:
    """Read a request or response whose body has a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return head + await reader.readexactly(int(value))
    return head


def _make_status_response(status: int) -> bytes:
    body = b'{"detail": "the proxy responds in place of the server"}'
    head = f"HTTP/1.1 {status} Injected\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


@contextmanager
def run_failure_proxy(target: str, share: float, seed: int) -> Iterator[tuple[str, FailureProxy]]:
    """Run a proxy for the block; yield its URL and the proxy."""
    proxy = FailureProxy(target, share, seed)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(proxy.connect, "127.0.0.1", 0, backlog=1024, limit=2**26)

    async def stop() -> None:
        server.close()
        # Connections that were just accepted get their tasks later.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
