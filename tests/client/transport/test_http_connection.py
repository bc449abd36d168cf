"""HTTP/1.1 connections of the built-in transport: valid responses in any form, and hostile ones."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinkerwire as tw
from support.hostile_responses import HOSTILE
from support.raw_server import Handler, RawServer, raw_server, send_parts
from support.scripted import TEST_TIMEOUT_S
from support.transports import REQUEST, error_of_send, send
from tinkerwire._transport import connection_pool, http_connection
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.http_transport import HttpTransport
from tinkerwire_base.call import ResponseLimits, SizeLimit, WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)
T = TypeVar("T")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def run_over(server: RawServer, work: Callable[[HttpTransport], Awaitable[T]]) -> T:
    """Run a coroutine with a transport to a server, and close the transport."""

    async def run() -> T:
        transport = HttpTransport(server.url)
        try:
            return await asyncio.wait_for(work(transport), TEST_TIMEOUT_S)
        finally:
            await transport.close()

    return asyncio.run(run())


async def get(transport: HttpTransport, request: WireRequest = REQUEST) -> WireResponse:
    """Send one request."""
    return await transport.send(request, Traffic.REST, TEST_TIMEOUT_S)


def response_to(handler: Handler, request: WireRequest = REQUEST) -> WireResponse:
    """Return the response of a server with this handler."""
    with raw_server(handler) as server:
        return run_over(server, lambda transport: get(transport, request))


def close_after(*parts: bytes) -> Handler:
    """Return a handler that sends parts and closes the connection."""

    def handle(client: socket.socket, _: int) -> None:
        send_parts(*parts)(client, 0)
        client.shutdown(socket.SHUT_RDWR)
        client.close()

    return handle


# --- valid responses --------------------------------------------------------------------------------------------------

VALID = {
    "length": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: a\r\n\r\nhello",
    "chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx: a\r\n\r\n"
    b"2\r\nhe\r\n3;name=value\r\nllo\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: a\r\n\r\n5\r\nhello\r\n0\r\nx: b\r\ny: c\r\n\r\n",
    "interim": b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: a\r\n\r\nhello",
}


@pytest.mark.parametrize("name", VALID)
def test_response_may_arrive_byte_by_byte(name: str) -> None:
    """Each form of a response has the same result however it is split, and its connection carries the next request."""
    whole = VALID[name]
    with raw_server(send_parts(*(whole[at : at + 1] for at in range(len(whole))))) as server:

        async def work(transport: HttpTransport) -> None:
            for _ in range(3):
                response = await get(transport)
                assert (response.status, response.content, response.headers["x"]) == (200, b"hello", "a")
                assert not {"y", "link"} & set(response.headers)

        run_over(server, work)
        assert [len(requests) for requests in server.requests] == [3]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=5000), st.lists(st.integers(1, 700), min_size=1, max_size=20), st.booleans())
def test_any_body_arrives_unchanged(body: bytes, sizes: list[int], is_chunked: bool) -> None:
    """A body of any bytes in any chunks arrives unchanged."""
    if not is_chunked:
        parts = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body), body]
    else:
        parts, rest = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"], body
        for size in sizes * len(body):
            if not rest:
                break
            chunk, rest = rest[:size], rest[size:]
            parts.append(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        parts.append(b"0\r\n\r\n")
    assert response_to(send_parts(*parts)).content == body


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
def test_body_may_end_with_the_connection(version: bytes) -> None:
    """Without a length, the end of the connection is the end of the body."""
    response = response_to(close_after(version + b" 200 OK\r\nx: a\r\n\r\nhel", b"lo"))
    assert (response.status, response.content) == (200, b"hello")


def test_repeated_header_has_all_values() -> None:
    """The values of a repeated header are in the response, in their order and without white space around them."""
    response = response_to(send_parts(b"HTTP/1.1 200 OK\r\nX:\ta \t\r\ncontent-length: 2\r\nx: b\r\n\r\nok"))
    assert (response.headers["x"], response.content) == ("a, b", b"ok")


@pytest.mark.parametrize("status", [204, 304])
def test_status_without_body_has_none(status: int) -> None:
    """The next response does not become the body of a 204 or 304."""
    with raw_server(send_parts(b"HTTP/1.1 %d Nothing\r\n\r\n" % status)) as server:

        async def work(transport: HttpTransport) -> list[WireResponse]:
            return [await get(transport), await get(transport)]

        assert {(response.status, response.content) for response in run_over(server, work)} == {(status, b"")}
        assert [len(requests) for requests in server.requests] == [2]


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ],
    ids=["close", "HTTP/1.0"],
)
def test_connection_that_ends_is_not_used_again(response: bytes) -> None:
    """The client closes the connection and opens another, even if the server leaves it open."""
    with raw_server(send_parts(response)) as server:

        async def work(transport: HttpTransport) -> None:
            for _ in range(3):
                assert (await get(transport)).content == b"ok"

        run_over(server, work)
        assert [len(requests) for requests in server.requests] == [1, 1, 1]


# --- requests ---------------------------------------------------------------------------------------------------------


def test_request_has_exactly_these_bytes() -> None:
    """The request line, the host without the scheme's port, the client's two headers, and the caller's."""
    with raw_server(send_parts(OK)) as server:

        async def work(transport: HttpTransport) -> None:
            await get(transport, WireRequest(method="GET", path="/a", query=(("k", "v w&"),), headers={"x-a": "b"}))
            await get(transport, WireRequest(method="POST", path="/b", headers={}))
            await get(transport, WireRequest(method="POST", path="/b", headers={}, content=b"[1]"))

        server.url += "/p%20q/r"
        run_over(server, work)
    host = server.url.split("/")[2].encode()
    fixed = b" HTTP/1.1\r\nhost: %s\r\naccept-encoding: gzip, deflate\r\n" % host
    assert server.requests[0] == [
        b"GET /p%20q/r/a?k=v%20w%26" + fixed + b"x-a: b\r\n\r\n",
        b"POST /p%20q/r/b" + fixed + b"content-length: 0\r\n\r\n",
        b"POST /p%20q/r/b" + fixed + b"content-length: 3\r\n\r\n[1]",
    ]


def test_host_header_of_the_user_replaces_the_own() -> None:
    """A tunnel or a virtual host may need another name than the address has."""
    with raw_server(send_parts(OK)) as server:
        request = WireRequest(method="GET", path="/x", headers={"host": "other.invalid"})
        run_over(server, lambda transport: get(transport, request))
    assert server.requests[0][0].lower().count(b"host:") == 1
    assert b"host: other.invalid\r\n" in server.requests[0][0]


def test_large_body_is_sent_to_a_slow_reader() -> None:
    """A body larger than all buffers arrives whole."""
    content = bytes(range(256)) * 50_000
    assert len(content) > 40 * http_connection.WRITE_BYTES
    with raw_server(send_parts(OK)) as server:
        request = WireRequest(method="POST", path="/x", headers={}, content=content)
        assert run_over(server, lambda transport: get(transport, request)).status == 200
        assert server.requests[0][0].endswith(b"\r\n\r\n" + content)


def test_response_may_come_before_the_body_is_read() -> None:
    """The response to a body that the server rejects is returned; its connection is not used again."""
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno"
    accepted = threading.Semaphore(0)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for _ in range(2):
            client, _ = listener.accept()
            client.recv(1000)
            client.sendall(refusal)
            accepted.release()
            clients.append(client)

    clients: list[socket.socket] = []
    threading.Thread(target=serve, daemon=True).start()
    request = WireRequest(method="POST", path="/x", headers={}, content=bytes(60_000_000))

    async def work(transport: HttpTransport) -> None:
        for _ in range(2):
            response = await get(transport, request)
            assert (response.status, response.content) == (413, b"no")

    with listener:
        run_over(RawServer(f"http://127.0.0.1:{listener.getsockname()[1]}"), work)
    assert accepted.acquire(timeout=TEST_TIMEOUT_S)
    assert accepted.acquire(timeout=TEST_TIMEOUT_S)
    for client in clients:
        client.close()


@pytest.mark.parametrize("response", [b"", b"HTTP/1.1 413 Too Large\r\n\r\nno"], ids=["none", "body"])
@pytest.mark.parametrize("is_read", [False, True])
def test_server_may_end_its_side_before_it_reads_the_body(
    response: bytes, is_read: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A response whose end is that of the connection does not wait for the body, and asyncio logs no error."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        client, _ = listener.accept()
        with client, suppress(OSError):
            client.recv(1000)
            client.sendall(response)
            client.shutdown(socket.SHUT_WR)
            while is_read and client.recv(2**20):
                pass
            if response:
                ended.wait(TEST_TIMEOUT_S)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    request = WireRequest(method="POST", path="/x", headers={}, content=bytes(20_000_000))
    server = RawServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    with listener:
        if response:
            received = run_over(server, lambda transport: get(transport, request))
            assert (received.status, received.content) == (413, b"no")
        else:
            with pytest.raises(tw.APIConnectionError):
                run_over(server, lambda transport: get(transport, request))
        ended.set()
        thread.join(TEST_TIMEOUT_S)
    assert caplog.messages == []


def test_lost_connection_ends_the_sending_of_a_body(caplog: pytest.LogCaptureFixture) -> None:
    """The rest of a large body is not written to a connection that the system reports as closed."""
    resume, closed = threading.Event(), threading.Event()

    def handle(client: socket.socket, _: int) -> None:
        client.sendall(OK)
        resume.wait(TEST_TIMEOUT_S)
        client.close()
        closed.set()

    with raw_server(handle) as server:

        async def work(transport: HttpTransport) -> None:
            await get(transport)
            resume.set()
            closed.wait(TEST_TIMEOUT_S)  # blocks the loop, so that it does not see the end of the connection
            with pytest.raises(tw.APIConnectionError):
                await get(transport, WireRequest(method="POST", path="/x", headers={}, content=bytes(20_000_000)))

        run_over(server, work)
    assert caplog.messages == []


@pytest.mark.parametrize("value", ["a\r\nx-b: c", "a\nb", "a\rb"])
def test_line_break_in_a_header_is_rejected(value: str) -> None:
    """Nothing is sent, and the error does not show the value, which may be a key."""
    with raw_server(send_parts(OK)) as server:
        request = WireRequest(method="GET", path="/x", headers={"x-a": value})
        with pytest.raises(ValueError, match="line break") as caught:
            run_over(server, lambda transport: get(transport, request))
        assert value not in str(caught.value)
        assert server.requests in ([], [[]])


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_ipv6_address_is_reached() -> None:
    """The host header has the brackets of the address."""
    with raw_server(send_parts(OK), socket.AF_INET6) as server:
        assert run_over(server, get).content == b"ok"
    assert b"host: [::1]:" in server.requests[0][0]


# --- hostile responses ------------------------------------------------------------------------------------------------

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


# --- lifetime ---------------------------------------------------------------------------------------------------------


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


def test_connections_share_one_name_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty requests at once look a name up once."""
    lookups, lookup = [], socket.getaddrinfo

    def count(host: str, port: int, *arguments: int, **options: int) -> object:
        lookups.append(host)
        return lookup("127.0.0.1", port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", count)
    with raw_server(send_parts(OK)) as server:
        server.url = server.url.replace("127.0.0.1", "server.invalid")

        async def work(transport: HttpTransport) -> None:
            await asyncio.gather(*(get(transport) for _ in range(20)))

        run_over(server, work)
    assert lookups == ["server.invalid"]


def test_second_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name whose first address refuses connections is reached at its second."""
    with raw_server(send_parts(OK)) as server:
        port = int(server.url.rpartition(":")[2])
        closed = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))
        addresses = [closed, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        assert asyncio.run(send("builtin", "http://server.invalid")).content == b"ok"


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
