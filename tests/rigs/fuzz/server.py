"""Server with the responses of the embedded server, some of them mutated."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from urllib.parse import parse_qsl, urlsplit

from rigs.fuzz.mutations import Reply, mutate_reply
from tinkerwire.local import EmbeddedServer
from tinkerwire_base.call import WireRequest

SPARED = 0.5
"""The share of responses that stay unchanged."""

VARIANTS: dict[str, tuple[str, dict[str, bool]]] = {
    "json": ("0.16.1", {}),
    "binary": ("0.38.0", {"proto_compress_fwdbwd": True}),
    "batched": ("0.38.0", {"sample_use_retrieve_futures": True, "sample_join_sampling_session": True}),
    "token": ("0.38.0", {"pjwt_auth_enabled": True}),
}
"""The embedded servers: the wire version and the flags of each."""


class MutatingServer:
    """Several embedded servers behind one port; a path begins with the seed and the name of the variant."""

    def __init__(self, servers: dict[str, EmbeddedServer]) -> None:
        self._servers = servers
        self._counts: Counter[tuple[str, str]] = Counter()
        self.url = ""

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to the one request of a connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *fields = head.split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields if field)
            }
            content = await reader.readexactly(int(headers.get("content-length", 0)))
            method, target, _ = line.split(" ")
            writer.write(await self._respond(method, target, headers, content))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _respond(self, method: str, target: str, headers: dict[str, str], content: bytes) -> bytes:
        parts = urlsplit(target)
        _, seed, variant, *segments = parts.path.split("/")
        path = "/" + "/".join(segments)
        request = WireRequest(
            method=method,
            path=path,
            query=tuple(parse_qsl(parts.query, keep_blank_values=True)),
            headers=headers,
            content=content or None,
        )
        response = await self._servers[variant].handle(request)
        reply_headers = {**response.headers, "content-length": str(len(response.content)), "connection": "close"}
        reply: Reply | None = Reply(f"{response.status} OK", list(reply_headers.items()), response.content)
        if seed != "plain":
            self._counts[seed, path] += 1
            rng = Random(f"{seed} {path.rpartition('/')[2]} {self._counts[seed, path]}")
            if rng.random() > SPARED and reply is not None:
                reply = mutate_reply(rng, reply)
        return b"" if reply is None else reply.encode()


@contextmanager
def run_mutating_server() -> Iterator[MutatingServer]:
    """Run a server for the block."""
    servers = {
        name: EmbeddedServer(wire_version=version, long_poll_s=0.2, client_config=flags, seed=1)
        for name, (version, flags) in VARIANTS.items()
    }
    server = MutatingServer(servers)
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def start() -> asyncio.Server:
        listening = await asyncio.start_server(server.connect, "127.0.0.1", 0, backlog=512, limit=2**20)
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        return listening

    def run() -> None:
        listening = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        listening.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()

    thread = threading.Thread(target=run, name="mutating-server", daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        for embedded in servers.values():
            embedded.close()
