"""AdminClient: the request of each method, and the arguments that it rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import KEY
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
EAST = timezone(timedelta(hours=2))
LOG = {"entries": [{"timestamp": "2026-01-01T00:00:00Z", "event": "checkpoint.create", "event_details": {}}]}
AdminCall = Callable[[tw.AdminClient], "tw.APIFuture[Any]"]


@pytest.fixture(params=[tw.AdminClient, tw.RestClient])
def admin(
    server: ScriptedServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tw.AdminClient]:
    """Open an AdminClient, or a RestClient, which has the same methods."""
    monkeypatch.setenv("TINKER_WIRE_VERSION", "0.38.0")
    with request.param(base_url=server.url, api_key=KEY) as client:
        yield client


@pytest.mark.parametrize(
    ("call", "path", "query", "response"),
    [
        (lambda admin: admin.get_audit_log(), "audit", {"event_type": "all"}, {"entries": []}),
        (
            lambda admin: admin.get_audit_log("projects", date(2026, 1, 31)),
            "audit",
            {"event_type": "projects", "day": "2026-01-31"},
            {"entries": []},
        ),
        (
            lambda admin: admin.get_audit_log(day=datetime(2026, 1, 31, 12, tzinfo=EAST)),
            "audit",
            {"event_type": "all", "day": "2026-01-31"},
            {"entries": []},
        ),
        (
            lambda admin: admin.get_billing_usage("2026-01-01T00:00:00Z", datetime(2026, 1, 2, tzinfo=EAST)),
            "billing/usage/events",
            {"starting_on": "2026-01-01T00:00:00+00:00", "ending_before": "2026-01-02T00:00:00+02:00"},
            {"data": []},
        ),
        (
            lambda admin: admin.get_billing_usage(datetime(2026, 1, 1), "2026-01-02 00:00:00"),
            "billing/usage/events",
            {"starting_on": "2026-01-01T00:00:00+00:00", "ending_before": "2026-01-02T00:00:00+00:00"},
            {"data": []},
        ),
        (
            lambda admin: admin.get_current_checkpoint_storage_usage(),
            "billing/usage/checkpoints/current",
            {},
            {"data": []},
        ),
        (
            lambda admin: admin.get_current_checkpoint_storage_usage("p"),
            "billing/usage/checkpoints/current",
            {"project_id": "p"},
            {"data": []},
        ),
    ],
)
def test_method_sends_its_request(
    server: ScriptedServer,
    admin: tw.AdminClient,
    call: AdminCall,
    path: str,
    query: dict[str, str],
    response: dict[str, object],
) -> None:
    """Each method sends the path and query of the wire; times without an offset are in UTC."""
    server.rules[path] = lambda _: ScriptedResponse(response)
    call(admin).result(TEST_TIMEOUT_S)
    (request,) = server.requests
    assert (request.method, request.name, request.query) == ("GET", path, query)


def test_invalid_arguments_are_rejected_before_sending(server: ScriptedServer, admin: tw.AdminClient) -> None:
    """An invalid event type, day or time raises an error that names it, before a request."""
    with pytest.raises(ValueError, match="event_type: must be one of 'all', 'checkpoints"):
        admin.get_audit_log("logins")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"day: expected a datetime\.date, got str"):
        admin.get_audit_log(day="2026-01-31")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"starting_on: .*RFC 3339.*'yesterday'"):
        admin.get_billing_usage("yesterday", "2026-01-02T00:00:00Z")
    with pytest.raises(ValueError, match=r"ending_before: .*got 5"):
        admin.get_billing_usage("2026-01-02T00:00:00Z", 5)  # type: ignore[arg-type]
    assert not server.requests
