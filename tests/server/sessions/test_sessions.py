"""Tests of sessions, which live as long as heartbeats arrive."""

from __future__ import annotations

import time

import pytest

from support.server_fixtures import Caller, Clock, ServerFactory
from tinkerwire._server.futures.retention_policy import RetentionPolicy


def test_session_lists_its_training_runs_and_samplers(call: Caller) -> None:
    """They are in the order of creation."""
    session_id = call.create_session()
    model_id = call.create_model(session_id)
    opened = call.run("save_weights_for_sampler", {"model_id": model_id, "sampling_session_seq_id": 0})
    body = call("GET", f"sessions/{session_id}").body
    assert body == {"training_run_ids": [model_id], "sampler_ids": [opened["sampling_session_id"]]}
    assert call("GET", "sessions/none").status == 404


def test_sessions_are_listed_newest_first(call: Caller) -> None:
    """The listing has pages."""
    ids = [call.create_session() for _ in range(3)]
    page = call("GET", "sessions", query=[("limit", "2"), ("offset", "1"), ("access_scope", "accessible")])
    assert page.body["sessions"] == [ids[1], ids[0]]


def test_heartbeat_keeps_a_session_alive(serve: ServerFactory, clock: Clock) -> None:
    """Without a heartbeat the session expires with its models, and returns 410."""
    call = serve(clock=clock, session_ttl_s=60)
    session_id = call.create_session()
    model_id = call.create_model(session_id)
    for _ in range(3):
        clock.now += 50
        assert call.post("session_heartbeat", {"session_id": session_id}).status == 200
    clock.now += 61
    assert call.post("session_heartbeat", {"session_id": session_id}).status == 410
    rejection = call.post("optim_step", {"model_id": model_id, "adam_params": {}})
    assert (rejection.status, "expired" in rejection.body["detail"]) == (410, True)
    assert call("GET", f"training_runs/{model_id}").status == 200


@pytest.mark.parametrize("jump_s", [-10_000.0, 10_000.0])
def test_wall_clock_jump_expires_neither_sessions_nor_results(
    serve: ServerFactory, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    wall_clock = Clock()
    monkeypatch.setattr(time, "time", wall_clock)
    call = serve(session_ttl_s=60, retention=RetentionPolicy(seconds=60))
    session_id = call.create_session()
    model_id = call.create_model(session_id)
    request_id = call.submit("optim_step", {"model_id": model_id, "adam_params": {}, "seq_id": 1})
    wall_clock.now += jump_s
    assert call.post("session_heartbeat", {"session_id": session_id}).status == 200
    assert call.result(request_id)["metrics"]["optimizer_step:max"] == 1


def test_heartbeat_of_an_unknown_session_is_404(call: Caller) -> None:
    """The error names the operation that creates sessions."""
    reply = call.post("session_heartbeat", {"session_id": "s-none"})
    assert (reply.status, "create_session" in reply.body["detail"]) == (404, True)


def test_resent_create_session_creates_one_session(call: Caller) -> None:
    """The same idempotency key gives the same session."""
    body = {"tags": ["a"], "user_metadata": {"b": 1}, "sdk_version": "0.16.1"}
    first, repeated, different = (call.post("create_session", body, key=key).body for key in ("a", "a", "b"))
    assert first == repeated != different


def test_wrong_api_key_is_401(serve: ServerFactory) -> None:
    """With api_key the server accepts only that key; its health check needs no key."""
    call = serve(api_key="tml-right")
    assert call("GET", "sessions", headers={"X-API-Key": "tml-right"}).status == 200
    for headers in ({}, {"x-api-key": "tml-wrong"}):
        assert call("GET", "sessions", headers=headers).status == 401
    assert call("GET", "healthz").status == 200


def test_telemetry_is_accepted(call: Caller) -> None:
    """The server accepts events and drops them."""
    event = {
        "event": "GENERIC_EVENT",
        "event_id": "1",
        "event_session_index": 0,
        "severity": "INFO",
        "timestamp": "2026-01-01T00:00:00Z",
        "event_name": "x",
        "event_data": {},
    }
    body = {"events": [event], "platform": "Linux", "sdk_version": "0.16.1", "session_id": "s"}
    assert call.post("telemetry", body).body == {"status": "accepted"}
