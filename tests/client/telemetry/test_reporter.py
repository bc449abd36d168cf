"""Telemetry events: their content, their destination, and that they delay and fail nothing."""

from __future__ import annotations

import itertools
import json
import logging
import re
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, PARAMS, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer
from tinkerwire._server.app import EmbeddedServer
from tinkerwire._telemetry import reporter as telemetry
from tinkerwire._telemetry.reporter import is_enabled
from tinkerwire._transport.address import DEFAULT_BASE_URL
from tinkerwire._transport.embedded import embedded_transport
from tinkerwire_base.call import default_converter
from tinkerwire_generated.models import TelemetrySendRequest

pytestmark = pytest.mark.timeout(60)
PROMPT = tw.ModelInput.from_ints([770077, 880088])


@pytest.fixture(autouse=True)
def on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enable telemetry, and disable flushing by time."""
    monkeypatch.setenv("TINKER_TELEMETRY", "1")
    monkeypatch.setattr(telemetry, "FLUSH_S", 1000.0)


def list_reported_events(server: ScriptedServer) -> list[dict[str, Any]]:
    """Return the events that arrived."""
    return [event for body in server.bodies("telemetry") for event in body["events"]]


def test_telemetry_is_enabled_for_tinker_service_only_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """TINKER_TELEMETRY enables or disables telemetry for every server."""
    monkeypatch.delenv("TINKER_TELEMETRY")
    assert is_enabled(DEFAULT_BASE_URL)
    assert not is_enabled("https://example.org")
    for value, is_on in {
        "1": True,
        "TRUE": True,
        "yes": True,
        "On": True,
        "": False,
        "0": False,
        "maybe": False,
    }.items():
        monkeypatch.setenv("TINKER_TELEMETRY", value)
        assert is_enabled(DEFAULT_BASE_URL) is is_enabled("https://example.org") is is_on


@pytest.mark.parametrize(
    ("value", "is_unrecognised"), [("banana", True), ("enabled", True), ("on", False), ("Off ", False), ("", False)]
)
def test_unrecognised_env_value_disables_telemetry_and_warns(
    server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    value: str,
    is_unrecognised: bool,
) -> None:
    """The warning names the value."""
    monkeypatch.setenv("TINKER_TELEMETRY", value)
    with caplog.at_level(logging.WARNING, "tinkerwire"), open_client(server.url) as client:
        assert (client.get_telemetry() is None) is (value != "on")
    messages = [record.getMessage() for record in caplog.records]
    assert (f"TINKER_TELEMETRY must be 1 or 0, got {value}; telemetry is disabled" in messages) is is_unrecognised


def test_disabled_telemetry_sends_nothing(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent, and get_telemetry() returns None."""
    monkeypatch.delenv("TINKER_TELEMETRY")
    server.rules["asample"] = lambda _: ScriptedResponse(status=400)
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base")
        assert isinstance(sampling.sample(PROMPT, 1, PARAMS).exception(TEST_TIMEOUT_S), tw.BadRequestError)
        assert client.get_telemetry() is sampling.get_telemetry() is None
    assert server.named("telemetry") == []


def test_events_of_session_are_numbered_in_order(server: ScriptedServer) -> None:
    """The start, logged events and the end have the session's id; all clients share one reporter."""
    with open_client(server.url, wire_version="0.38.0") as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        sampling = client.create_sampling_client(base_model="base")
        reporter = client.get_telemetry()
        assert reporter is not None
        assert {reporter} == {c.get_telemetry() for c in (training, sampling, client.create_rest_client())}
        assert reporter.log("mine", {"a": [1, {"b": None}]}, "WARNING")
    events = list_reported_events(server)
    assert [event["event"] for event in events] == ["SESSION_START", "GENERIC_EVENT", "SESSION_END"]
    assert [event["event_session_index"] for event in events] == [0, 1, 2]
    assert (events[1]["event_name"], events[1]["event_data"], events[1]["severity"]) == (
        "mine",
        {"a": [1, {"b": None}]},
        "WARNING",
    )
    assert re.fullmatch(r"0:00:\d\d\.\d{6}", events[2]["duration"])
    assert len({event["event_id"] for event in events}) == 3
    (body,) = server.bodies("telemetry")
    assert (body["session_id"], body["sdk_version"]) == ("s1", "0.38.0")
    assert default_converter().structure(body, TelemetrySendRequest).process_uuid
    assert not reporter.log("too late")


def test_older_wire_has_no_process_uuid(server: ScriptedServer) -> None:
    """A client without a session sends nothing."""
    with open_client(server.url) as client:
        client.get_server_capabilities()
    assert server.named("telemetry") == []
    with open_client(server.url, wire_version="0.16.1") as client:
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    assert "process_uuid" not in server.bodies("telemetry")[0]


@pytest.mark.parametrize("wire", ["0.16.1", "0.38.0"])
def test_embedded_server_accepts_events(wire: str) -> None:
    """The events conform to the contract."""
    statuses: list[int] = []
    with EmbeddedServer(wire_version=wire) as embedded:
        transport = embedded_transport(embedded)
        send = transport.send

        async def watched(request: Any, traffic: Any, timeout_s: float) -> Any:
            response = await send(request, traffic, timeout_s)
            if request.path.endswith("/telemetry"):
                statuses.append(response.status)
            return response

        transport.send = watched  # type: ignore[method-assign]
        with tw.ServiceClient(base_url="http://localhost:1", transport=transport, wire_version=wire) as client:
            with pytest.raises(tw.TinkerError):
                client.create_sampling_client(base_model="nonsense").result(TEST_TIMEOUT_S)
            client.get_telemetry().log_exception(KeyError("x"))  # type: ignore[union-attr]
    assert statuses
    assert set(statuses) == {200}


def test_errors_are_sent_soon_without_secrets(server: ScriptedServer) -> None:
    """User errors are events of their own kind; no event has prompts, responses or secrets."""
    detail_text = f"bad prompt 770077 for {KEY}"
    body = {"detail": detail_text}
    responses = iter([ScriptedResponse(body, status=422), ScriptedResponse(body, status=501)])
    server.rules["asample"] = lambda _: next(responses)
    policy = tw.RetryConfig(enable_retry_logic=False)
    with open_client(server.url, retry=policy, default_headers_overrides={"x-mine": "my-secret"}) as client:
        sampling = client.create_sampling_client(base_model="base")
        for _ in range(2):
            assert sampling.sample(PROMPT, 1, PARAMS).exception(TEST_TIMEOUT_S) is not None
        reporter = client.get_telemetry()
        assert reporter is not None
        reporter.log("mine", {"key": KEY, "list": [f"x{KEY}", "my-secret"]})
        reporter.log_exception(ValueError(detail_text))
        server.wait_for(lambda: len(list_reported_events(server)) >= 3, "without waiting for the end")
    events = list_reported_events(server)
    user = next(event for event in events if event.get("event_name") == "user_error")
    assert user["severity"] == "WARNING"
    assert user["event_data"] == {
        "error_type": "UnprocessableEntityError",
        "status_code": 422,
        "message": "UnprocessableEntityError, POST /api/v1/asample, HTTP 422",
    }
    unhandled = [event for event in events if event["event"] == "UNHANDLED_EXCEPTION"]
    assert [event["error_type"] for event in unhandled] == ["InternalServerError", "ValueError"]
    assert unhandled[0]["severity"] == "ERROR"
    assert "tinkerwire/_connection/connection.py:" in unhandled[0]["traceback"]
    text = json.dumps(server.bodies("telemetry"))
    for secret in (KEY, "my-secret", "770077", "bad prompt"):
        assert secret not in text
    assert "***" in text


@pytest.mark.parametrize(
    "response",
    [
        ScriptedResponse(status=500),
        ScriptedResponse(status=404),
        ScriptedResponse(drop=True),
        ScriptedResponse([1]),
        ScriptedResponse(status=429, headers={"retry-after": "60"}),
        None,
    ],
)
def test_failing_telemetry_delays_and_fails_nothing(
    server: ScriptedServer,
    response: ScriptedResponse | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Errors surface at once, work continues, close returns, and the log is empty."""
    gate = Gate()
    server.rules["telemetry"] = lambda _: response or ScriptedResponse(gate=gate)
    server.rules["asample"] = lambda _: ScriptedResponse(status=400)
    monkeypatch.setattr(telemetry, "DRAIN_S", 0.2)
    monkeypatch.setattr(telemetry, "SEND_TIMEOUT_S", 1000.0)
    with caplog.at_level(logging.INFO, "tinkerwire"), open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base")
        for _ in range(5):
            assert isinstance(sampling.sample(PROMPT, 1, PARAMS).exception(TEST_TIMEOUT_S), tw.BadRequestError)
        server.wait_for_requests("telemetry")
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert caplog.records == []
    gate.release()


def test_404_ends_telemetry(server: ScriptedServer) -> None:
    """After a 404 no event is sent or stored."""
    server.rules["telemetry"] = lambda _: ScriptedResponse(status=404)
    server.rules["asample"] = lambda _: ScriptedResponse(status=400)
    with open_client(server.url, retry=FAST) as client:
        sampling = client.create_sampling_client(base_model="base")
        sampling.sample(PROMPT, 1, PARAMS).exception(TEST_TIMEOUT_S)
        reporter = client.get_telemetry()
        assert reporter is not None
        wait_until(lambda: not reporter.log("x"), "the reporter ends")
        sampling.sample(PROMPT, 1, PARAMS).exception(TEST_TIMEOUT_S)
    assert len(server.named("telemetry")) == 1


def test_queue_data_and_batches_are_limited(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that are too large or not JSON are dropped."""
    monkeypatch.setattr(telemetry, "MAX_QUEUED_EVENTS", 250)
    with open_client(server.url) as client:
        reporter = client.get_telemetry()
        assert reporter is not None
        for data in ({"x": object()}, {"x": "y" * 5000}, {1: 2}, {"x": {1, 2}}, 5):
            assert not reporter.log("wrong", data)  # type: ignore[arg-type]
        assert not reporter.log("wrong", {}, "LOUD")  # type: ignore[arg-type]
        assert not reporter.log(5)  # type: ignore[arg-type]
        accepted = list(itertools.takewhile(lambda n: reporter.log(f"e{n}"), range(1000)))
        assert len(accepted) == 250
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    assert [len(body["events"]) for body in server.bodies("telemetry")] == [100, 100, 50]
    assert [event["event_name"] for event in list_reported_events(server)] == [f"e{n}" for n in accepted]


def test_failed_batch_is_retried_and_dropped(server: ScriptedServer) -> None:
    """The retries send the same events."""
    busy = iter([ScriptedResponse(status=500)])
    server.rules["telemetry"] = lambda request: next(busy, ScriptedResponse({"status": "accepted"}))
    with open_client(server.url) as client:
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        client._connection.start(lambda: _wake(client)).result(TEST_TIMEOUT_S)
        first, second = server.wait_for_requests("telemetry", 2)[:2]
    assert first.body["events"] == second.body["events"]


async def _wake(client: tw.ServiceClient) -> None:
    reporter = client.get_telemetry()
    assert reporter is not None
    reporter.record_exception(KeyError())
