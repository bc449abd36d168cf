"""The transport to the embedded server, without a socket."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tinkerwire._transport.backpressure import Traffic
from tinkerwire.local import EmbeddedServer, EmbeddedTransport, FaultInjection, embedded_transport, shared_server
from tinkerwire_base.call import WireRequest
from tinkerwire_base.errors import APIConnectionError, APITimeoutError

HEALTH = WireRequest(method="GET", path="/api/v1/healthz", headers={})


def _send(server: EmbeddedServer, timeout_s: float = 5.0) -> Any:
    return asyncio.run(EmbeddedTransport(server).send(HEALTH, Traffic.REST, timeout_s))


def test_embedded_transport_returns_response() -> None:
    """Status, headers and body are those of the server."""
    with EmbeddedServer() as server:
        answer = _send(server)
    assert (answer.status, answer.content) == (200, b'{"status":"ok"}')


def test_embedded_timeout_raises_timeout_error() -> None:
    """A missing response raises APITimeoutError, as over any transport."""
    with (
        EmbeddedServer(fault_injection=FaultInjection(delay_s=1000)) as server,
        pytest.raises(APITimeoutError, match=r"0\.05 s"),
    ):
        _send(server, 0.05)


def test_injected_drop_raises_connection_error() -> None:
    """A dropped connection raises APIConnectionError, but not a timeout."""
    with (
        EmbeddedServer(fault_injection=FaultInjection(p_reset=1)) as server,
        pytest.raises(APIConnectionError, match="on purpose") as raised,
    ):
        _send(server)
    assert not isinstance(raised.value, APITimeoutError)


def test_closing_transport_leaves_server_open() -> None:
    """The server belongs to its creator; several clients may share it."""
    with EmbeddedServer() as server:
        asyncio.run(EmbeddedTransport(server).close())
        assert _send(server).status == 200


def test_process_shares_one_server() -> None:
    """Transports without a server of their own use the same one."""
    first, second = embedded_transport(), embedded_transport()
    assert first.server is second.server is shared_server()


def test_server_works_on_several_loops() -> None:
    """Threads with event loops of their own send requests at once."""
    statuses: list[int] = []
    with EmbeddedServer() as server:
        threads = [threading.Thread(target=lambda: statuses.append(_send(server).status)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 8
