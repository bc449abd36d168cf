"""HTTP/1.1 connections of the built-in transport: valid responses in any form, and hostile ones."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinkerwire as tw
from support.raw_server import OK, RawServer, close_after, raw_server, send_parts
from support.scripted import TEST_TIMEOUT_S
from support.transports import get, response_to, run_over
from tinkerwire._transport import http_connection
from tinkerwire._transport.http_transport import HttpTransport
from tinkerwire_base.call import WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)


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
