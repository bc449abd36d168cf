"""Export of the trace of a session: the client polls until the export is ready or has failed."""

from __future__ import annotations

import logging

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._rest import traces

pytestmark = pytest.mark.timeout(60)
PENDING = ScriptedResponse({"status": "pending"})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll without long pauses."""
    monkeypatch.setattr(traces, "ASK_EVERY_S", 0.001)


def test_export_is_polled_until_ready(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """The client logs once that the server prepares the trace, and returns its URL."""
    ready = ScriptedResponse({"status": "ready", "url": "https://x"})
    server.rules["sessions/s1/trace_export"] = in_order(PENDING, PENDING, ready)
    caplog.set_level(logging.WARNING, "tinkerwire")
    with open_client(server.url, wire_version="0.38.0") as client:
        assert client.create_rest_client().export_session_trace("s1").result(TEST_TIMEOUT_S) == "https://x"
    assert len(server.requests) == 3
    assert len([record for record in caplog.records if "prepares its trace" in record.message]) == 1


@pytest.mark.parametrize(
    ("response", "reason"),
    [({"status": "failed", "error": "too large"}, "too large"), ({"status": "ready"}, "the server gave no reason")],
)
def test_failed_export_names_the_reason(server: ScriptedServer, response: dict[str, str], reason: str) -> None:
    """A failed export or a missing URL raises an error with the reason of the server."""
    server.rules["sessions/s1/trace_export"] = in_order(PENDING, ScriptedResponse(response))
    with open_client(server.url, wire_version="0.38.0") as client, pytest.raises(tw.TinkerError, match=reason):
        client.create_rest_client().export_session_trace("s1").result(TEST_TIMEOUT_S)
