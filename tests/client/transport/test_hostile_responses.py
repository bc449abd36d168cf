"""Malformed, oversized, surplus and incomplete responses."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

import tinkerwire as tw
from support.hostile_responses import HOSTILE
from support.raw_server import OK, close_after, raw_server, send_parts
from support.scripted import TEST_TIMEOUT_S
from support.transports import error_of_send, get, run_over
from tinkerwire._transport.http_transport import HttpTransport
from tinkerwire_base.call import ResponseLimits, SizeLimit, WireRequest

pytestmark = pytest.mark.timeout(60)


LIMIT = SizeLimit(max_bytes=100_000, setting="a setting")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_response_is_connection_error(name: str) -> None:
    """The error comes at once, although the server leaves the connection open."""
    with raw_server(send_parts(HOSTILE[name])) as server:
        error = error_of_send("builtin", server.url)
        assert not isinstance(error, tw.APITimeoutError)
        assert error.may_have_been_sent
        assert server.closed.acquire(timeout=TEST_TIMEOUT_S)


@pytest.mark.parametrize(
    "parts",
    [
        [b"HTTP/1.1 200 OK\r\ncontent-length: 100001\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", *[b"1000\r\n" + b"x" * 4096 + b"\r\n"] * 30],
        [b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100_001],
    ],
    ids=["length", "chunks", "connection"],
)
def test_body_beyond_limit_is_not_read_to_its_end(parts: list[bytes]) -> None:
    """The client closes the connection at the limit."""
    request = WireRequest(method="GET", path="/x", headers={}, limits=ResponseLimits(result=LIMIT, error=LIMIT))
    with raw_server(send_parts(*parts)) as server:
        with pytest.raises(tw.ResponseTooLargeError, match="a setting"):
            run_over(server, lambda transport: get(transport, request))
        assert server.closed.acquire(timeout=TEST_TIMEOUT_S)


@pytest.mark.parametrize(
    "parts", [[OK + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"], [OK, b"HTTP/1.1 200 OK\r\n"], [OK + b"x"]]
)
def test_bytes_after_a_response_do_not_become_the_next(parts: list[bytes]) -> None:
    """A second response to one request ends the connection; the next request has another."""

    def handle(client: socket.socket, number: int) -> None:
        send_parts(*parts)(client, number)

    with raw_server(handle) as server:

        async def work(transport: HttpTransport) -> None:
            for _ in range(3):
                assert (await get(transport)).content == b"ok"
                await asyncio.to_thread(server.closed.acquire, timeout=TEST_TIMEOUT_S)

        run_over(server, work)
        assert [len(requests) for requests in server.requests] == [1, 1, 1]


@pytest.mark.parametrize(
    "parts",
    [
        [b""],
        [b"HTTP/1.1 200 OK\r\ncontent-le"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", b"x"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nhello"],
        [b"HTTP/1.1 100 Continue\r\n\r\n"],
    ],
)
def test_incomplete_response_is_connection_error(parts: list[bytes]) -> None:
    """A connection that ends early never yields a part of a body as the whole."""
    with raw_server(close_after(*parts)) as server:
        error = error_of_send("builtin", server.url)
    assert not isinstance(error, tw.APITimeoutError)
    assert error.may_have_been_sent


@pytest.mark.skipif(sys.platform != "linux", reason="counts files in /proc")
def test_no_socket_is_left_by_failing_requests() -> None:
    """After many failures of all kinds, the process has as many open files as before."""

    def count_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count_files()
    for response in HOSTILE.values():
        with raw_server(send_parts(response)) as server:
            error_of_send("builtin", server.url)
    error_of_send("builtin", "http://127.0.0.1:1")
    assert count_files() <= before
