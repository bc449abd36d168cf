"""Limits of bodies at both servers: slow senders, and large bodies that must not hold up other requests."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from tinkerwire._gateway import server as gateway_server
from tinkerwire._server import aiohttp_app
from tinkerwire._server.http import body_reading
from tinkerwire._server.http.body_thread import LARGE_BODY_BYTES
from tinkerwire._server.http.validation import Validator
from tinkerwire._transport.poll_connections import PollLimit
from tinkerwire.gateway import Gateway
from tinkerwire.testing import LocalServer
from tinkerwire_base.call import Operation

SESSION = orjson.dumps({"tags": [], "user_metadata": None, "sdk_version": "0.16.1"})
TEST_TIMEOUT_S = 60.0
HEAD = (
    b"POST /api/v1/create_session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Stainless-Package-Version: 0.16.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


@pytest.fixture(params=["server", "gateway"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the URL of an embedded server, and of a gateway before one."""
    with ExitStack() as stack:
        server = stack.enter_context(LocalServer(wire="0.16.1"))
        yield server.url if request.param == "server" else stack.enter_context(Gateway(to=server.url)).url


def connect(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=TEST_TIMEOUT_S)


def receive_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "head", [HEAD % len(SESSION), HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked")]
)
def test_body_that_does_not_arrive_is_408(url: str, head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection ends, so that nothing waits for the rest."""
    monkeypatch.setattr(body_reading, "BODY_GRACE_S", 0.2)
    with connect(url) as connection:
        connection.sendall(head)
        response = b""
        while b"too slowly" not in response and (part := connection.recv(65_536)):
            response += part
    assert response.startswith(b"HTTP/1.1 408 ")
    assert b"\r\nConnection: close\r\n" in response
    assert b"too slowly" in response


def test_body_that_trickles_is_408(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single bytes do not extend the time by more than their share."""
    monkeypatch.setattr(body_reading, "BODY_GRACE_S", 0.2)
    monkeypatch.setattr(body_reading, "MIN_BODY_BYTES_PER_S", 10_000)
    with connect(url) as connection:
        connection.sendall(HEAD % 10_000)
        connection.settimeout(0.02)
        response = b""
        deadline = time.monotonic() + TEST_TIMEOUT_S
        while not response and time.monotonic() < deadline:
            connection.sendall(b" ")
            with suppress(TimeoutError):
                response = connection.recv(65_536)
    assert response.startswith(b"HTTP/1.1 408 ")


def test_body_that_arrives_at_the_rate_is_accepted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time grows with the bytes that have arrived."""
    monkeypatch.setattr(body_reading, "BODY_GRACE_S", 0.3)
    monkeypatch.setattr(body_reading, "MIN_BODY_BYTES_PER_S", 0.01)
    with connect(url) as connection:
        connection.sendall(HEAD.replace(b"Host", b"Connection: close\r\nHost") % len(SESSION) + SESSION[:5])
        time.sleep(0.6)
        connection.sendall(SESSION[5:])
        assert receive_all(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("sent", [b"", HEAD[:30]])
def test_connection_without_a_request_is_closed(url: str, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiohttp_app, "FIRST_REQUEST_S", 0.2)
    with connect(url) as connection:
        connection.sendall(sent)
        assert receive_all(connection) == b""


def test_connection_beyond_the_maximum_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that are left are those for connections to the upstream; a connection that closes makes room."""
    limit = PollLimit(2, "this test")
    monkeypatch.setattr(gateway_server, "find_poll_limit", lambda *_: limit)
    request = HEAD % len(SESSION) + SESSION
    with LocalServer(wire="0.16.1") as server, Gateway(to=server.url) as gateway:
        with connect(gateway.url) as first, connect(gateway.url) as second:
            for connection in (first, second):
                connection.sendall(request)
                assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
            with connect(gateway.url) as third:
                response = receive_all(third)
            assert response.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nRetry-After: 1\r\n" in response
        deadline = time.monotonic() + TEST_TIMEOUT_S
        status = b""
        while not status.startswith(b"HTTP/1.1 200 ") and time.monotonic() < deadline:
            with connect(gateway.url) as fourth, suppress(OSError):
                fourth.sendall(request)
                status = fourth.recv(65_536)
        assert status.startswith(b"HTTP/1.1 200 ")


def test_connection_with_a_request_stays_open(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiohttp_app, "FIRST_REQUEST_S", 1.0)
    head = b"GET /api/v1/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connect(url) as connection:
        connection.sendall(head)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        time.sleep(1.5)
        connection.sendall(head)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("version", ["0.16.1", None])
def test_other_requests_are_answered_while_a_large_body_is_read(
    url: str, encoding: str, version: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse_body, may_end = Validator.parse_body, threading.Event()

    def wait_and_parse(validator: Validator, operation: Operation, *arguments: Any, **options: Any) -> Any:
        assert operation.name != "create_session" or may_end.wait(TEST_TIMEOUT_S)
        return parse_body(validator, operation, *arguments, **options)

    body = SESSION.replace(b"null", b"null" + b" " * LARGE_BODY_BYTES)
    headers = {"content-type": "application/json", "content-encoding": encoding}
    headers |= {} if version is None else {"x-stainless-package-version": version}
    if encoding == "gzip":
        body = gzip.compress(body)
    with httpx.Client(timeout=TEST_TIMEOUT_S, trust_env=False) as client, ThreadPoolExecutor(1) as pool:
        # The first request discovers the server.
        assert client.get(f"{url}/api/v1/healthz").status_code == 200
        monkeypatch.setattr(Validator, "parse_body", wait_and_parse)
        posting = pool.submit(client.post, f"{url}/api/v1/create_session", content=body, headers=headers)
        try:
            assert client.get(f"{url}/api/v1/healthz").status_code == 200
            assert not posting.done()
        finally:
            may_end.set()
        assert posting.result().status_code == 200
