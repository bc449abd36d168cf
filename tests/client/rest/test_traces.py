"""The trace of a session: asked for until it is there, or cannot be."""

from __future__ import annotations

import logging

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._rest import traces

pytestmark = pytest.mark.timeout(60)
PENDING = ScriptedResponse({"status": "pending"})


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "ASK_EVERY_S", 0.001)


def test_it_is_waited_for(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """While it is made, the log says so once; then comes its address."""
    ready = ScriptedResponse({"status": "ready", "url": "https://x"})
    server.rules["sessions/s1/trace_export"] = in_order(PENDING, PENDING, ready)
    caplog.set_level(logging.WARNING, "tinkerwire")
    with open_client(server.url, wire_version="0.38.0") as client:
        assert client.create_rest_client().export_session_trace("s1").result(PATIENCE_S) == "https://x"
    assert len(server.asked) == 3
    assert len([record for record in caplog.records if "prepares its trace" in record.message]) == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [({"status": "failed", "error": "too large"}, "too large"), ({"status": "ready"}, "the server gave no reason")],
)
def test_it_cannot_be_made(server: ScriptedServer, answer: dict[str, str], why: str) -> None:
    """A failure, or an address that is missing, is an error with the server's reason."""
    server.rules["sessions/s1/trace_export"] = in_order(PENDING, ScriptedResponse(answer))
    with open_client(server.url, wire_version="0.38.0") as client, pytest.raises(tw.TinkerError, match=why):
        client.create_rest_client().export_session_trace("s1").result(PATIENCE_S)
