"""Tests of ServiceClient.diagnose; those of ``tinkerwire doctor`` are in tests/cli."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

import tinkerwire as tw
from support.clients import KEY
from support.scripted import ScriptedResponse, ScriptedServer
from tinkerwire._diagnosis import server as server_checks
from tinkerwire._diagnosis.finding import Finding
from tinkerwire._transport.http_transport import HttpTransport

pytestmark = pytest.mark.timeout(120)
CLOSED = "http://127.0.0.1:9"


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def diagnose(url: str) -> dict[str, Finding]:
    """Return the findings of a new client by name."""
    with tw.ServiceClient(base_url=url, api_key=KEY, plain_http_hosts=["service.invalid"]) as service:
        return by_name(service.diagnose())


def test_all_steps_of_a_healthy_server_succeed(server: ScriptedServer) -> None:
    """Both forms of the method return the steps in order."""
    steps = ["proxy", "name lookup", "connection", "request", "dialect", "clock", "latency"]
    with tw.ServiceClient(base_url=server.url) as service:
        for findings in (service.diagnose(), asyncio.run(service.diagnose_async())):
            assert [(finding.name, finding.status) for finding in findings] == [(step, "ok") for step in steps]


def test_list_ends_with_the_step_that_failed() -> None:
    """The last finding has the way out."""
    *_, last = diagnose(CLOSED).values()
    assert (last.name, last.status) == ("connection", "failed")
    assert last.remedy is not None


def test_proxy_is_checked_in_place_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the server is left to the proxy; no finding shows the password of the proxy."""
    monkeypatch.setenv("http_proxy", CLOSED.replace("//", "//me:hidden@"))
    findings = diagnose("http://service.invalid")
    assert findings["proxy"].detail == CLOSED
    assert findings["name lookup"].status == "ok"
    assert findings["connection"].status == "failed"
    assert "hidden" not in str(findings)


def test_proxy_is_the_one_that_requests_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_PROXY may hold ranges of addresses."""
    monkeypatch.setenv("http_proxy", CLOSED)
    monkeypatch.setenv("no_proxy", "0.0.0.0/8")
    with tw.ServiceClient(base_url="http://0.0.0.1:9", api_key=KEY, plain_http_hosts=["0.0.0.1"]) as service:
        assert by_name(service.diagnose())["proxy"].detail == "none is used"


def test_rejected_key_is_not_shown(server: ScriptedServer) -> None:
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({"detail": f"bad {KEY}"}, status=401)
    request = diagnose(server.url)["request"]
    assert request.status == "failed"
    assert "401" in request.detail
    assert KEY not in request.detail


def test_requests_end_before_the_limit_of_the_client(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is unavailable for long fails the step, and the client stays usable."""
    monkeypatch.setattr(server_checks, "REQUESTS_TIMEOUT_S", 0.5)
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({"detail": "down"}, status=503)
    with tw.ServiceClient(base_url=server.url) as service:
        assert by_name(service.diagnose())["request"].status == "failed"
        del server.rules["get_server_capabilities"]
        assert service.get_server_capabilities().supported_models


def test_wrong_clock_is_a_warning(server: ScriptedServer) -> None:
    moment = format_datetime(datetime.now(timezone.utc) - timedelta(hours=1), usegmt=True)
    server.rules["healthz"] = lambda _: ScriptedResponse({"status": "ok"}, headers={"Date": moment})
    clock = diagnose(server.url)["clock"]
    assert clock.status == "warning"
    assert clock.remedy is not None


def test_transport_of_the_user_replaces_the_steps_of_the_network(server: ScriptedServer) -> None:
    """The transport may reach the server on another way than the address."""
    with tw.ServiceClient(base_url=CLOSED, transport=HttpTransport(server.url)) as service:
        findings = service.diagnose()
    assert [finding.name for finding in findings] == ["request", "dialect", "clock", "latency"]


def test_closed_client_has_no_diagnosis() -> None:
    service = tw.ServiceClient(base_url="local")
    service.close().result(timeout=60)
    with pytest.raises(tw.ClientClosedError):
        service.diagnose()
