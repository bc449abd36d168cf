"""The lookup of a server's name, and the choice among its addresses."""

from __future__ import annotations

import asyncio
import socket

import pytest

from support.raw_server import OK, raw_server, send_parts
from support.transports import get, run_over, send
from tinkerwire._transport.http_transport import HttpTransport

pytestmark = pytest.mark.timeout(60)


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
