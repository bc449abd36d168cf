"""HTTP proxy that tunnels every CONNECT to a server of the test and records the hosts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Tunnel:
    """Proxy; with a ``refusal`` it responds with that instead of tunnelling."""

    port: int = 0
    refusal: bytes = b""
    requests: list[str] = field(default_factory=list)
    """The head of every request."""


@contextmanager
def tunnel(address: tuple[str, int]) -> Iterator[Tunnel]:
    """Run a proxy to one address for the block."""
    proxy = Tunnel()
    listener = socket.create_server(("127.0.0.1", 0))
    proxy.port = listener.getsockname()[1]

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=forward, args=(client,), daemon=True).start()

    def forward(client: socket.socket) -> None:
        # A client may leave at any point; the thread then ends.
        with suppress(OSError), client:
            head = b""
            while b"\r\n\r\n" not in head:
                content = client.recv(4096)
                if not content:
                    return
                head += content
            proxy.requests.append(head.decode())
            if proxy.refusal or not head.startswith(b"CONNECT "):
                client.sendall(proxy.refusal or b"HTTP/1.1 405 Only CONNECT\r\ncontent-length: 0\r\n\r\n")
                return
            with socket.create_connection(address) as server:
                client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                copier = threading.Thread(target=copy, args=(server, client), daemon=True)
                copier.start()
                copy(client, server)
                copier.join()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy bytes from one socket to the other until the end."""
    try:
        while content := source.recv(65536):
            sink.sendall(content)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # either side is gone
