"""Server on a plain socket that sends bytes as a test gives them, valid HTTP or not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
"""A response of status 200."""


@dataclass
class RawServer:
    """Requests that a raw server received, by connection."""

    url: str
    requests: list[list[bytes]] = field(default_factory=list)
    """The requests of every connection, with their bodies."""
    received: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released once for every request."""
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released once for every connection that the client closes."""


Handler = Callable[[socket.socket, int], object]
"""Sends the response to a request, by its number from 0; a handler that closes the socket ends the connection."""


def send_parts(*parts: bytes) -> Handler:
    """Return a handler that sends the same parts for every request, in separate packets."""

    def send(client: socket.socket, _: int) -> None:
        for part in parts:
            client.sendall(part)

    return send


def close_after(*parts: bytes) -> Handler:
    """Return a handler that sends parts and closes the connection."""

    def handle(client: socket.socket, _: int) -> None:
        send_parts(*parts)(client, 0)
        client.shutdown(socket.SHUT_RDWR)
        client.close()

    return handle


@contextmanager
def raw_server(handler: Handler, family: socket.AddressFamily = socket.AF_INET) -> Iterator[RawServer]:
    """Run a server for the block; it reads each request and calls ``handler`` for its response."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    listener = socket.create_server((host, 0), family=family)
    address = f"[{host}]" if ":" in host else host
    server = RawServer(f"http://{address}:{listener.getsockname()[1]}")
    number = iter(range(1_000_000))
    clients: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                clients.append(client)
                received: list[bytes] = []
                server.requests.append(received)
                threading.Thread(target=serve, args=(client, received), daemon=True).start()

    def serve(client: socket.socket, received: list[bytes]) -> None:
        with suppress(OSError, ValueError), client:
            while request := _read_request(client):
                received.append(request)
                server.received.release()
                handler(client, next(number))
                if client.fileno() < 0:
                    return
        server.closed.release()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        for open_socket in (listener, *clients):
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
            open_socket.close()
        thread.join()


def _read_request(client: socket.socket) -> bytes:
    """Return a request with its body; empty once the client has closed the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    parts = [body]
    missing = int(headers.get(b"content-length", b"0")) - len(body)
    while missing > 0 and (part := client.recv(65536)):
        parts.append(part)
        missing -= len(part)
    return head + b"\r\n\r\n" + b"".join(parts)
