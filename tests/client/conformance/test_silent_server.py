"""A server that takes each request and sends no response: no requirement holds."""

from __future__ import annotations

import asyncio

import pytest

from tinkerwire._conformance.areas import service
from tinkerwire._conformance.catalogue import load_requirements
from tinkerwire._conformance.client.wire_client import EXCHANGE_TIMEOUT_S, WireClient
from tinkerwire._conformance.exchange import Exchange
from tinkerwire._conformance.official_sdk import official_client
from tinkerwire._conformance.outcome import Status
from tinkerwire._conformance.runner import run_requirement
from tinkerwire._conformance.subject.server import Server
from tinkerwire._wire.dialect import Dialect
from tinkerwire_base.call import WireRequest

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
