"""The lifetime of connections: timeouts, cancellation, idle connections, and close."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

import tinkerwire as tw
from support.raw_server import OK, raw_server, send_parts
from support.scripted import TEST_TIMEOUT_S
from support.transports import REQUEST, get, run_over
from tinkerwire._transport import connection_pool
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.http_transport import HttpTransport

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\nok",
    ],
    ids=["close", "HTTP/1.0", "unexpected error"],
)
def test_connection_that_ends_is_not_used_again(response: bytes) -> None:
    """The client closes the connection and opens another, even if the server leaves it open."""
    with raw_server(send_parts(response)) as server:

        async def work(transport: HttpTransport) -> None:
            for _ in range(3):
                assert (await get(transport)).content == b"ok"

        run_over(server, work)
        assert [len(requests) for requests in server.requests] == [1, 1, 1]


def test_cancelled_request_leaves_no_response_to_the_next() -> None:
    """A late response to a request that was cancelled or timed out is not taken for that of another."""
    resume = threading.Event()

    def handle(client: socket.socket, number: int) -> None:
        if number < 2:
            resume.wait(TEST_TIMEOUT_S)
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % number)

    with raw_server(handle) as server:

        async def work(transport: HttpTransport) -> None:
            cancelled = asyncio.create_task(get(transport))
            await asyncio.to_thread(server.received.acquire, timeout=TEST_TIMEOUT_S)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            with pytest.raises(tw.APITimeoutError):
                await transport.send(REQUEST, Traffic.REST, 0.05)
            resume.set()
            assert (await get(transport)).content == b"2"
            assert (await get(transport)).content == b"3"

        run_over(server, work)
        assert [len(requests) for requests in server.requests] == [1, 1, 2]


def test_timeout_of_one_request_does_not_hold_for_the_next() -> None:
    """A request with a longer limit follows one with a shorter limit on the same connection."""

    def handle(client: socket.socket, number: int) -> None:
        time.sleep(0.3 if number > 0 else 0)
        client.sendall(OK)

    with raw_server(handle) as server:

        async def work(transport: HttpTransport) -> None:
            await transport.send(REQUEST, Traffic.REST, 0.2)
            await transport.send(REQUEST, Traffic.REST, TEST_TIMEOUT_S)
            with pytest.raises(tw.APITimeoutError):
                await transport.send(REQUEST, Traffic.REST, 0.05)

        run_over(server, work)


def test_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is not used for a minute is closed."""
    monkeypatch.setattr(connection_pool, "KEEP_ALIVE_S", 0.05)
    with raw_server(send_parts(OK)) as server:

        async def work(transport: HttpTransport) -> None:
            await get(transport)
            assert await asyncio.to_thread(server.closed.acquire, timeout=TEST_TIMEOUT_S)
            await get(transport)

        run_over(server, work)
        assert [len(requests) for requests in server.requests] == [1, 1]


def test_close_ends_requests_and_connections() -> None:
    """A request under way fails when the transport is closed, and no socket stays open."""
    with raw_server(lambda *_: None) as server:

        async def work(transport: HttpTransport) -> None:
            waiting = asyncio.create_task(get(transport))
            await asyncio.to_thread(server.received.acquire, timeout=TEST_TIMEOUT_S)
            await transport.close()
            with pytest.raises(tw.APIConnectionError, match="the client closed the connection"):
                await waiting
            assert await asyncio.to_thread(server.closed.acquire, timeout=TEST_TIMEOUT_S)

        run_over(server, work)
