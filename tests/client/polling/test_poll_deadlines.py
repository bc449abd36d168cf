"""Time limits of polls: progress_timeout, max_elapsed, and log lines about long waits."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, open_client, wait_until
from support.optim_steps import OPTIM_STEP_RESULT, make_expired_step_error
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._connection import throttled_log
from tinkerwire._futures import operation_record

pytestmark = pytest.mark.timeout(60)


def test_deadline_error_names_request_queue_and_setting(
    server: ScriptedServer, pass_time: Callable[[float], None]
) -> None:
    """After progress_timeout the error names the request, its id, the state of the queue and the setting."""
    paused = ScriptedResponse({"queue_state": "paused_capacity", "queue_state_reason": "no GPUs"}, status=408)
    server.on_poll("OptimStep", lambda _: paused)
    with open_client(server.url, retry=tw.RetryConfig(progress_timeout=50)) as client:
        step = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) >= 2, "the queue state, and another poll")
        assert not step.done()
        pass_time(50)
        with pytest.raises(tw.RequestTimeoutError) as caught:
            step.result(TEST_TIMEOUT_S)
    request_id = server.polls("OptimStep")[0].body["request_id"]
    assert caught.value.request_id == request_id
    for part in ("OptimStep", request_id, "50 s", "paused_capacity", "no GPUs", "progress_timeout"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "response", [ScriptedResponse(gate=Gate()), ScriptedResponse(b" " * 1000, trickle_s=0.1)], ids=["silent", "slow"]
)
def test_deadline_applies_to_silent_and_slow_responses(
    server: ScriptedServer, response: ScriptedResponse, pass_time: Callable[[float], None]
) -> None:
    """A server that sends nothing, or one byte at a time, cannot keep a future beyond its deadline."""
    assert make_expired_step_error(server, response, pass_time)


def test_server_errors_are_raised_after_max_elapsed(server: ScriptedServer) -> None:
    """The client polls a server that always returns 500 until max_elapsed, and raises its text."""
    server.on_poll("OptimStep", lambda _: ScriptedResponse({"detail": "NaN is not JSON"}, status=500))
    policy = attrs.evolve(FAST, max_elapsed=0.3)
    with (
        open_client(server.url, retry=policy) as client,
        pytest.raises(tw.InternalServerError, match="NaN is not JSON"),
    ):
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)


def test_not_ready_response_restarts_max_elapsed(server: ScriptedServer) -> None:
    """A "not ready" response between two errors restarts the time of max_elapsed."""
    broken, not_ready = ScriptedResponse(status=500), ScriptedResponse(status=408, delay_s=0.3)
    server.on_poll("OptimStep", in_order(broken, not_ready, broken, not_ready, broken, OPTIM_STEP_RESULT))
    with open_client(server.url, retry=attrs.evolve(FAST, max_elapsed=0.25)) as client:
        assert client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S).metrics == {
            "x:mean": 1.0
        }


def test_long_wait_is_logged_repeatedly(
    server: ScriptedServer,
    training: tw.TrainingClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A long wait is logged with request, duration and reason, repeatedly and while the server holds the poll."""
    assert (operation_record.FIRST_WAIT_LOG_S, operation_record.WAIT_LOG_INTERVAL_S) == (10.0, 60.0)
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.05)
    monkeypatch.setattr(operation_record, "WAIT_LOG_INTERVAL_S", 0.05)
    monkeypatch.setattr(throttled_log, "WARNING_INTERVAL_S", 0.0)
    gate = Gate()
    paused = ScriptedResponse(
        {"queue_state": "paused_rate_limit", "queue_state_reason": "too many clients"}, status=408
    )
    server.on_poll("OptimStep", in_order(paused, ScriptedResponse(OPTIM_STEP_RESULT.body, gate=gate)))
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        future = training.optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) == 2, "the queue state, and another poll")
        request_id = server.polls("OptimStep")[0].body["request_id"]
        line = rf"OptimStep {request_id}: no result after \d+ s; queue paused_rate_limit: too many clients"
        wait_until(lambda: len(re.findall(line, caplog.text)) >= 3, "three log lines")
        gate.release()
        future.result(TEST_TIMEOUT_S)


def test_simultaneous_waits_share_one_log_line(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Samples that wait at the same time do not log a line each."""
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.02)
    warnings: list[str] = []
    warn = throttled_log.ThrottledLog.warn

    def record(log: throttled_log.ThrottledLog, kind: str, message: str, *arguments: object) -> None:
        warnings.append(kind)
        warn(log, kind, message, *arguments)

    monkeypatch.setattr(throttled_log.ThrottledLog, "warn", record)
    gate = Gate()
    server.on_poll("Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
    with open_client(server.url) as client, caplog.at_level(logging.WARNING, "tinkerwire"):
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        samples = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(50)]
        wait_until(lambda: len(warnings) >= 50, "a warning of every wait")
        gate.release()
        for sample in samples:
            sample.result(TEST_TIMEOUT_S)
    assert len(caplog.records) == 1
