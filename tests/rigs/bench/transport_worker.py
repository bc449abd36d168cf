"""One transport under load in a fresh process: `python transport_worker.py NAME URL REQUESTS IN_FLIGHT`.

Each request posts a sample of 1,000 prompt tokens and then fetches its result (256 tokens and logprobs), as
bytes in and bytes out: no JSON is made or read here. Prints one JSON object with the figures.

`python transport_worker.py NAME hostile RESPONSE` sends a request to a server with a hostile response, and prints
whether the client rejects or accepts it, hangs, or takes one response for another.
"""

# Each transport is imported by the process that measures it, and by no other.
# ruff: noqa: PLC0415

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

from support.hostile_responses import HOSTILE
from support.raw_server import raw_server, send_parts

Post = Callable[[str, bytes], Awaitable[bytes]]
HOSTILE_TIMEOUT_S = 5.0
"""Time after which a client that has received a hostile response counts as hung; the servers send at once."""
TWO_RESPONSES = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"
"""A response with another after it, which must not become the response to the next request."""
RESULT_BYTES = 2000
"""Least size of the result of a sample, in JSON and in protobuf."""
HEADERS = {"content-type": "application/json", "accept": "application/json", "x-api-key": "tml-bench"}


@contextlib.asynccontextmanager
async def over_httpx(in_flight: int) -> AsyncIterator[Post]:
    import httpx

    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with httpx.AsyncClient(limits=limits, headers=HEADERS, timeout=60) as client:

        async def post(url: str, body: bytes) -> bytes:
            return (await client.post(url, content=body)).content

        yield post


@contextlib.asynccontextmanager
async def over_httpx2(in_flight: int) -> AsyncIterator[Post]:
    import httpx2

    limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with httpx2.AsyncClient(limits=limits, headers=HEADERS, timeout=60) as client:

        async def post(url: str, body: bytes) -> bytes:
            return (await client.post(url, content=body)).content

        yield post


@contextlib.asynccontextmanager
async def over_httpx_on_pyqwest(in_flight: int) -> AsyncIterator[Post]:
    import httpx
    import pyqwest
    from pyqwest.httpx import AsyncPyqwestTransport

    transport = AsyncPyqwestTransport(pyqwest.HTTPTransport(pool_max_idle_per_host=in_flight))
    async with httpx.AsyncClient(transport=transport, headers=HEADERS, timeout=60) as client:

        async def post(url: str, body: bytes) -> bytes:
            return (await client.post(url, content=body)).content

        yield post


@contextlib.asynccontextmanager
async def over_httpx_on_aiohttp(in_flight: int) -> AsyncIterator[Post]:
    import httpx
    from httpx_aiohttp import AiohttpTransport

    transport = AiohttpTransport(limits=httpx.Limits(max_connections=in_flight))
    async with httpx.AsyncClient(transport=transport, headers=HEADERS, timeout=60) as client:

        async def post(url: str, body: bytes) -> bytes:
            return (await client.post(url, content=body)).content

        yield post


@contextlib.asynccontextmanager
async def over_pyqwest(in_flight: int) -> AsyncIterator[Post]:
    import pyqwest

    async with pyqwest.HTTPTransport(pool_max_idle_per_host=in_flight) as transport:
        client = pyqwest.Client(transport)

        async def post(url: str, body: bytes) -> bytes:
            return (await client.post(url, HEADERS, body)).content

        yield post


@contextlib.asynccontextmanager
async def over_aiohttp(in_flight: int) -> AsyncIterator[Post]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector, headers=HEADERS) as client:

        async def post(url: str, body: bytes) -> bytes:
            async with client.post(url, data=body) as response:
                return await response.read()

        yield post


@contextlib.asynccontextmanager
async def over_niquests(in_flight: int) -> AsyncIterator[Post]:
    import niquests

    async with niquests.AsyncSession(pool_connections=1, pool_maxsize=in_flight) as client:

        async def post(url: str, body: bytes) -> bytes:
            return (await client.post(url, data=body, headers=HEADERS)).content or b""

        yield post


@contextlib.asynccontextmanager
async def over_curl_cffi(in_flight: int) -> AsyncIterator[Post]:
    from curl_cffi.requests import AsyncSession

    async with AsyncSession(max_clients=in_flight, headers=HEADERS) as client:

        async def post(url: str, body: bytes) -> bytes:
            return bytes((await client.post(url, data=body)).content)

        yield post


@contextlib.asynccontextmanager
async def over_httptools(in_flight: int) -> AsyncIterator[Post]:
    """Send over asyncio's protocols with httptools as parser, and nothing else: the least that Python can do."""
    import httptools

    idle: list[Connection] = []
    fixed = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport
            self.parser = httptools.HttpResponseParser(self)

        def send(self, request: bytes) -> asyncio.Future[bytes]:
            self.parts: list[bytes] = []
            self.response = asyncio.get_running_loop().create_future()
            self.transport.write(request)
            return self.response

        def data_received(self, data: bytes) -> None:
            self.parser.feed_data(data)

        def on_body(self, part: bytes) -> None:
            self.parts.append(part)

        def on_message_complete(self) -> None:
            self.response.set_result(b"".join(self.parts))

    async def post(url: str, body: bytes) -> bytes:
        at = urlsplit(url)
        if idle:
            connection = idle.pop()
        else:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(Connection, at.hostname, at.port)
        head = f"POST {at.path} HTTP/1.1\r\nhost: {at.netloc}\r\n{fixed}content-length: {len(body)}\r\n\r\n"
        content = await connection.send(head.encode() + body)
        idle.append(connection)
        return content

    yield post
    for connection in idle:
        connection.transport.close()


@contextlib.asynccontextmanager
async def over_tinkerwire(in_flight: int) -> AsyncIterator[Post]:
    from tinkerwire._transport.backpressure import Traffic
    from tinkerwire._transport.http_transport import HttpTransport
    from tinkerwire_base.call import WireRequest

    transports: dict[str, HttpTransport] = {}

    async def post(url: str, body: bytes) -> bytes:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        transport = transports.get(origin) or transports.setdefault(origin, HttpTransport(origin))
        request = WireRequest(method="POST", path=parts.path, headers=HEADERS, content=body)
        return (await transport.send(request, Traffic.SAMPLING_FUTURES, 60.0)).content

    yield post
    for transport in transports.values():
        await transport.close()


TRANSPORTS = {
    "tinkerwire": over_tinkerwire,
    "httpx": over_httpx,
    "httpx2": over_httpx2,
    "httpx on pyqwest": over_httpx_on_pyqwest,
    "httpx on aiohttp": over_httpx_on_aiohttp,
    "pyqwest": over_pyqwest,
    "aiohttp": over_aiohttp,
    "niquests": over_niquests,
    "curl_cffi": over_curl_cffi,
    "asyncio and httptools": over_httptools,
}
MODULES = {
    "tinkerwire": "tinkerwire._transport.http_transport",
    "httpx on pyqwest": "pyqwest.httpx",
    "httpx on aiohttp": "httpx_aiohttp",
    "curl_cffi": "curl_cffi.requests",
    "asyncio and httptools": "httptools",
}


def measure_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read_memory_mib(field: str) -> float:
    line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith(field))
    return int(line.split()[1]) / 1024


async def load(name: str, url: str, requests: int, in_flight: int) -> dict[str, float]:
    sample = b'{"prompt":{"chunks":[{"tokens":[%s]}]}}' % b",".join(b"%d" % (1000 + i) for i in range(1000))
    async with TRANSPORTS[name](in_flight) as post:

        async def worker(count: int) -> None:
            for _ in range(count):
                await post(f"{url}/api/v1/asample", sample)
                content = await post(f"{url}/api/v1/retrieve_future", b'{"request_id":"sample"}')
                if len(content) < RESULT_BYTES:
                    raise RuntimeError(f"{name}: the result is not whole: {content[-60:]!r}")

        await asyncio.gather(*(worker(1) for _ in range(in_flight)))
        cpu, wall = measure_cpu_s(), time.perf_counter()
        await asyncio.gather(*(worker(requests // 2 // in_flight) for _ in range(in_flight)))
        cpu, wall = measure_cpu_s() - cpu, time.perf_counter() - wall
    sent_requests = requests // 2 // in_flight * in_flight * 2
    # A sample is two requests.
    return {"cpu_ms": cpu / sent_requests * 2000, "per_s": sent_requests / wall, "peak_mib": read_memory_mib("VmHWM")}


async def meet_hostile(name: str, response: bytes) -> str:
    """Send a request to a server with a hostile response, and return how the client takes it."""
    with raw_server(send_parts(response)) as server:
        try:
            async with TRANSPORTS[name](1) as post:
                bodies = [await asyncio.wait_for(post(f"{server.url}/x", b"{}"), HOSTILE_TIMEOUT_S)]
                if response == TWO_RESPONSES:
                    bodies += [await post(f"{server.url}/x", b"{}") for _ in range(2)]
        except asyncio.TimeoutError:
            return "hung"
        except Exception:
            return "rejected"
    return "mixed up" if b"evil" in bodies else "accepted"


def main() -> None:
    if sys.argv[2] == "hostile":
        responses = HOSTILE | {"two responses": TWO_RESPONSES}
        sys.stdout.write(json.dumps(asyncio.run(meet_hostile(sys.argv[1], responses[sys.argv[3]]))) + "\n")
        return
    name, url, requests, in_flight = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    start_mib, cpu = read_memory_mib("VmRSS"), measure_cpu_s()
    __import__(MODULES.get(name, name))
    figures = {"import_ms": (measure_cpu_s() - cpu) * 1000, "import_mib": read_memory_mib("VmRSS") - start_mib}
    figures |= asyncio.run(load(name, url, requests, in_flight))
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
