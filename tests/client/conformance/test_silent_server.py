"""Servers that send no response, to any request or to polls: no requirement holds, and tests end."""

from __future__ import annotations

import asyncio

import attrs
import httpx
import pytest

from tinkerwire._conformance.areas import service
from tinkerwire._conformance.catalogue import load_requirements
from tinkerwire._conformance.client import futures
from tinkerwire._conformance.client.futures import Futures, QueuedWork
from tinkerwire._conformance.client.wire_client import EXCHANGE_TIMEOUT_S, WireClient
from tinkerwire._conformance.exchange import Exchange
from tinkerwire._conformance.official_sdk import official_client
from tinkerwire._conformance.outcome import Status
from tinkerwire._conformance.runner import run_requirement
from tinkerwire._conformance.subject.server import Server
from tinkerwire._conformance.violation import Violation
from tinkerwire._wire.dialect import Dialect
from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_generated import models

TIMEOUT_S = 120.0


class SilentClient(WireClient):
    """A client whose requests all end without a response, at once."""

    async def send(
        self, request: WireRequest, timeout_s: float = EXCHANGE_TIMEOUT_S, *, is_chunked: bool = False
    ) -> Exchange:
        """Return an exchange without a response."""
        exchange = Exchange(request, f"{self.base_url}{request.path}", None, "the connection broke", 0.0)
        self.recent = [exchange]
        return exchange


@pytest.mark.parametrize("wire", ["0.3.0", "0.38.0"])
def test_no_requirement_holds_without_a_response(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken connection is neither a success nor a rejection; only the findings of discovery need no request."""
    monkeypatch.setattr(official_client, "PAUSE_S", 0.0)
    found_out = {f"{service.AREA.prefix}-{row.number:03}" for row in service.OPTIONAL_OPERATIONS}

    async def run() -> dict[str, Status]:
        server = Server(SilentClient("http://127.0.0.1:1", "tml-test-key", Dialect.for_version(wire)), "key", "model")
        monkeypatch.setattr(server, "open_client", lambda dialect: SilentClient("http://127.0.0.1:1", "key", dialect))
        requirements = [item for name, item in load_requirements().items() if name not in found_out]
        return {item.id: (await run_requirement(server, item, {})).status for item in requirements}

    statuses = asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))
    assert {name: status for name, status in statuses.items() if status in (Status.PASSED, Status.ERROR)} == {}
    assert Status.FAILED in statuses.values()


class HoldingClient(WireClient):
    """A client of a server that holds every request."""

    async def _receive(self, request: WireRequest, url: str, timeout_s: float, *, is_chunked: bool) -> WireResponse:
        await asyncio.sleep(timeout_s)
        raise httpx.ReadTimeout("no data")


def test_held_poll_ends_with_the_time_for_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that is held does not outlast the time for the result, though servers may hold polls for minutes."""
    monkeypatch.setattr(futures, "MIN_POLL_TIMEOUT_S", 0.1)
    client = HoldingClient("http://127.0.0.1:1", "tml-test-key", Dialect.for_version("0.16.1"))
    promise = Exchange(WireRequest(method="POST", path="/api/v1/forward", headers={}), client.base_url, None, "", 0.0)
    work = QueuedWork("forward", models.UntypedAPIFuture(request_id="7"), promise)
    with pytest.raises(Violation) as caught:
        asyncio.run(asyncio.wait_for(Futures(client).wait(work, 0.2), TIMEOUT_S))
    assert caught.value.expected == "the result of forward within 0.2 s"
    assert caught.value.exchange is not None
    assert caught.value.exchange.request.path.endswith("/retrieve_future")


def test_end_of_test_shows_the_request_without_response() -> None:
    """The outcome of a test that is ended has the request that it waited for, not another one that had a response."""

    async def wait_for_info(server: Server) -> None:
        await server.client.send(server.client.json_request("POST", "get_info", {"model_id": "m"}))

    async def run() -> Exchange | None:
        client = HoldingClient("http://127.0.0.1:1", "tml-test-key", Dialect.for_version("0.16.1"))
        heartbeat = client.json_request("POST", "session_heartbeat", {"session_id": "s"})
        response = WireResponse(status=200, headers={}, content=b"{}")
        client.recent.append(Exchange(heartbeat, f"{client.base_url}{heartbeat.path}", response, "", 0.1))
        requirement = attrs.evolve(load_requirements()["MOD-002"], needs=(), test=wait_for_info, max_s=0.2)
        outcome = await run_requirement(Server(client, "key", "model"), requirement, {})
        assert outcome.status is Status.FAILED
        return outcome.exchange

    exchange = asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))
    assert exchange is not None
    assert exchange.request.path.endswith("/get_info")
    assert exchange.error == "no response before the end of the test"
