"""AdminClient: what each method asks for, and what it refuses to ask."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import KEY
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
EAST = timezone(timedelta(hours=2))
LOG = {"entries": [{"timestamp": "2026-01-01T00:00:00Z", "event": "checkpoint.create", "event_details": {}}]}
Ask = Callable[[tw.AdminClient], Any]


@pytest.fixture(params=[tw.AdminClient, tw.RestClient])
def admin(server: ScriptedServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of its own; the methods are those of RestClient as well."""
    monkeypatch.setenv("TINKER_WIRE_VERSION", "0.38.0")
    with request.param(base_url=server.url, api_key=KEY) as client:
        yield client


@pytest.mark.parametrize(
    ("ask", "path", "query", "answer"),
    [
        (lambda a: a.get_audit_log(), "audit", {"event_type": "all"}, {"entries": []}),
        (
            lambda a: a.get_audit_log("projects", date(2026, 1, 31)),
            "audit",
            {"event_type": "projects", "day": "2026-01-31"},
            {"entries": []},
        ),
        (
            lambda a: a.get_audit_log(day=datetime(2026, 1, 31, 12, tzinfo=EAST)),
            "audit",
            {"event_type": "all", "day": "2026-01-31"},
            {"entries": []},
        ),
        (
            lambda a: a.get_billing_usage("2026-01-01T00:00:00Z", datetime(2026, 1, 2, tzinfo=EAST)),
            "billing/usage/events",
            {"starting_on": "2026-01-01T00:00:00+00:00", "ending_before": "2026-01-02T00:00:00+02:00"},
            {"data": []},
        ),
        (
            lambda a: a.get_billing_usage(datetime(2026, 1, 1), "2026-01-02 00:00:00"),
            "billing/usage/events",
            {"starting_on": "2026-01-01T00:00:00+00:00", "ending_before": "2026-01-02T00:00:00+00:00"},
            {"data": []},
        ),
        (lambda a: a.get_current_checkpoint_storage_usage(), "billing/usage/checkpoints/current", {}, {"data": []}),
        (
            lambda a: a.get_current_checkpoint_storage_usage("p"),
            "billing/usage/checkpoints/current",
            {"project_id": "p"},
            {"data": []},
        ),
    ],
)
def test_what_is_asked_for(
    server: ScriptedServer, admin: tw.AdminClient, ask: Ask, path: str, query: dict[str, str], answer: Any
) -> None:
    """Path and query are those of the wire; times without an offset count as UTC."""
    server.rules[path] = lambda _: ScriptedResponse(answer)
    ask(admin).result(PATIENCE_S)
    (asked,) = server.asked
    assert (asked.method, asked.name, asked.query) == ("GET", path, query)


def test_what_is_refused(server: ScriptedServer, admin: tw.AdminClient) -> None:
    """Kinds of events, days and times that are none are named, and nothing is sent."""
    with pytest.raises(ValueError, match="event_type: 'logins' is not one of 'all', 'checkpoints"):
        admin.get_audit_log("logins")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"day: expected a datetime\.date, got str"):
        admin.get_audit_log(day="2026-01-31")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"starting_on: .*RFC 3339.*'yesterday'"):
        admin.get_billing_usage("yesterday", "2026-01-02T00:00:00Z")
    with pytest.raises(ValueError, match=r"ending_before: .*got 5"):
        admin.get_billing_usage("2026-01-02T00:00:00Z", 5)  # type: ignore[arg-type]
    assert not server.asked
