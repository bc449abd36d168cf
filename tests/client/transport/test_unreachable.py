"""An address that leads nowhere fails soon, unless the user set how long to try; an accepted connection is no such."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import FAST, open_client
from support.scripted import PATIENCE_S, Gate, ScriptedResponse, ScriptedServer, in_order
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
    """Let the time for which an unreached address is tried by default be over at once."""
    assert sender.FIRST_RESPONSE_BUDGET_S == 6.0
    monkeypatch.setattr(sender, "FIRST_RESPONSE_BUDGET_S", 0.0)
    yield


def test_an_unreachable_address_fails_soon_by_default() -> None:
    """Without a setting of the user's, one attempt is enough when the time for a wrong address is over."""
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
def test_what_the_user_set_holds_from_the_first_request_on(setting: dict[str, Any]) -> None:
    """A server that is still starting is waited for as long as the policy says."""
    server = StartingServer(refusals=7)
    policy = tw.RetryConfig(**QUICK, **setting)
    with open_client("http://127.0.0.1:1", transport=server, retry=policy) as client:
        assert client.get_server_capabilities().supported_models == []
    assert server.sent == 8


def test_an_accepted_connection_is_no_wrong_address(server: ScriptedServer) -> None:
    """The first requests are held and dropped; all the attempts of the default policy follow."""
    server.rules["get_server_capabilities"] = in_order(
        *[ScriptedResponse(drop=True, delay_s=0.01)] * 9, server.healthy_response
    )
    with open_client(server.url, retry=FAST) as client:
        client.get_server_capabilities()
    assert len(server.named("get_server_capabilities")) == 10


def test_a_server_that_was_reached_once_is_waited_for() -> None:
    """A refusal after an accepted connection is one of the attempts of the policy, not the end."""

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


def test_operations_that_wait_while_a_server_starts_all_go_through(server: ScriptedServer) -> None:
    """Twenty threads use a client whose first connections are dropped; each gets its answer."""
    hold = Gate()
    server.rules["get_server_capabilities"] = in_order(
        *[ScriptedResponse(drop=True, hold=hold)] * 5, server.healthy_response
    )
    done: list[object] = []
    with open_client(server.url, retry=FAST) as client:
        threads = [threading.Thread(target=lambda: done.append(client.get_server_capabilities())) for _ in range(20)]
        for thread in threads:
            thread.start()
        server.wait_for_requests("get_server_capabilities", 5)
        hold.release()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert len(done) == 20
