"""Unreachable addresses fail soon, unless the user set how long to retry or a connection was accepted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import FAST, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._connection import sender
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.errors import connection_error
from tinkerwire_base.call import WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)
QUICK: dict[str, Any] = {"retry_delay_base": 0.001, "retry_delay_max": 0.001}


class StartingServer:
    """A server to which no connection comes about at first, as while it is starting."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.sent = 0

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """Refuse so often, then answer."""
        self.sent += 1
        if self.sent <= self.refusals:
            raise connection_error(request, "http://127.0.0.1:1", ConnectionRefusedError(), may_have_been_sent=False)
        return WireResponse(status=200, content=b'{"supported_models": []}')

    async def close(self) -> None:
        """Nothing to close."""


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time budget for unreached addresses to zero."""
    assert sender.FIRST_RESPONSE_BUDGET_S == 6.0
    monkeypatch.setattr(sender, "FIRST_RESPONSE_BUDGET_S", 0.0)
    yield


def test_unreachable_address_fails_soon_by_default() -> None:
    """With default limits one attempt is enough once the budget is spent."""
    server = StartingServer(refusals=1000)
    with (
        open_client("http://127.0.0.1:1", transport=server, retry=tw.RetryConfig(**QUICK)) as client,
        pytest.raises(tw.APIConnectionError, match="ConnectionRefusedError"),
    ):
        client.get_server_capabilities()
    assert server.sent == 1


@pytest.mark.parametrize(
    "setting",
    [{"max_attempts": 8}, {"max_attempts": 1000}, {"max_elapsed": 59.0}, {"retry_if": lambda _: True}],
    ids=lambda setting: next(iter(setting)),
)
def test_user_limits_hold_from_first_request(setting: dict[str, Any]) -> None:
    """A server that is still starting is awaited as long as the policy allows."""
    server = StartingServer(refusals=7)
    policy = tw.RetryConfig(**QUICK, **setting)
    with open_client("http://127.0.0.1:1", transport=server, retry=policy) as client:
        assert client.get_server_capabilities().supported_models == []
    assert server.sent == 8


def test_accepted_connection_gets_all_attempts(server: ScriptedServer) -> None:
    """The first requests are held and dropped; all attempts of the default policy follow."""
    server.rules["get_server_capabilities"] = in_order(
        *[ScriptedResponse(drop=True, delay_s=0.01)] * 9, server.healthy_response
    )
    with open_client(server.url, retry=FAST) as client:
        client.get_server_capabilities()
    assert len(server.named("get_server_capabilities")) == 10


def test_reached_server_gets_all_attempts() -> None:
    """A refused connection after an accepted one is one of the attempts of the policy."""

    class Restarting(StartingServer):
        async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
            if self.sent == 0:
                self.sent += 1
                raise connection_error(request, "http://127.0.0.1:1", ConnectionResetError())
            return await super().send(request, traffic, timeout_s)

    server = Restarting(refusals=5)
    with open_client("http://127.0.0.1:1", transport=server, retry=tw.RetryConfig(**QUICK)) as client:
        client.get_server_capabilities()
    assert server.sent == 6


def test_operations_succeed_once_server_has_started(server: ScriptedServer) -> None:
    """Twenty threads use a client whose first connections are dropped; each gets its response."""
    gate = Gate()
    server.rules["get_server_capabilities"] = in_order(
        *[ScriptedResponse(drop=True, gate=gate)] * 5, server.healthy_response
    )
    done: list[object] = []
    with open_client(server.url, retry=FAST) as client:
        threads = [threading.Thread(target=lambda: done.append(client.get_server_capabilities())) for _ in range(20)]
        for thread in threads:
            thread.start()
        server.wait_for_requests("get_server_capabilities", 5)
        gate.release()
        for thread in threads:
            thread.join(TEST_TIMEOUT_S)
    assert len(done) == 20
