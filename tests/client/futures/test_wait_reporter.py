"""Tests of the reports of long waits, in the log and to ``on_wait``."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer
from tinkerwire._connection import throttled_log
from tinkerwire._futures import operation_record

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report a wait almost at once and then often, instead of after 10 s and then once a minute."""
    assert (operation_record.FIRST_WAIT_LOG_S, operation_record.WAIT_LOG_INTERVAL_S) == (10.0, 60.0)
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.05)
    monkeypatch.setattr(operation_record, "WAIT_LOG_INTERVAL_S", 0.02)


@pytest.mark.usefixtures("short_intervals")
def test_on_wait_receives_every_long_wait(server: ScriptedServer) -> None:
    """The status has the type and id of the request; a listener that raises does not affect the result."""
    gate = Gate()
    server.on_poll("Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
    statuses: list[tw.WaitStatus] = []

    def listen(status: tw.WaitStatus) -> None:
        statuses.append(status)
        raise RuntimeError("mine")

    with open_client(server.url, on_wait=listen) as client:
        future = client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS)
        wait_until(lambda: any(status.request_id for status in statuses), "a status of the sample")
        gate.release()
        future.result(TEST_TIMEOUT_S)
    assert {status.request_type for status in statuses if status.request_id == future.request_id} == {"Sample"}


@pytest.mark.usefixtures("short_intervals")
@pytest.mark.parametrize("name", ["create_session", "create_model"])
@pytest.mark.parametrize("is_silent", [True, False])
def test_wait_until_a_request_is_accepted_is_reported(server: ScriptedServer, name: str, is_silent: bool) -> None:
    """Before the operation has a request id, the reason has the request sent and the last response received."""
    gate = Gate()

    def rule(request: RecordedRequest) -> ScriptedResponse:
        if gate.is_open:
            return server.healthy_response(request)
        return (
            ScriptedResponse(server.healthy_response(request).body, gate=gate)
            if is_silent
            else ScriptedResponse({"detail": "on fire"}, status=503)
        )

    server.rules[name] = rule
    reason = f"{name}: no response yet to attempt 1" if is_silent else "on fire"
    statuses: list[tw.WaitStatus] = []
    policy = tw.RetryConfig(retry_delay_base=0.1, retry_delay_max=0.1, max_attempts=1000)
    with open_client(server.url, on_wait=statuses.append, retry=policy) as client:
        training = client.create_lora_training_client("base")
        wait_until(lambda: any(reason in status.reason for status in statuses), "the reason")
        gate.release()
        training.result(TEST_TIMEOUT_S)
    assert ("CreateModel", "", "") in {
        (status.request_type, status.request_id, status.queue_state) for status in statuses
    }


@pytest.mark.usefixtures("short_intervals")
def test_wait_in_the_operation_queue_is_reported(
    server: ScriptedServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    pass_time: Callable[[float], None],
) -> None:
    """The log names the operation that waits and the operation ahead of it; after the results, reports end."""
    monkeypatch.setattr(throttled_log, "WARNING_INTERVAL_S", 0.0)
    patterns = (
        r"SaveWeights: no result after \d+ s; it waits for the operations before it",
        r"OptimStep: .*/api/v1/optim_step: no response yet to attempt 1",
    )
    gate = Gate()
    server.rules["optim_step"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    statuses: list[tw.WaitStatus] = []
    with caplog.at_level(logging.WARNING, "tinkerwire"), open_client(server.url, on_wait=statuses.append) as client:
        training = client.create_lora_training_client("base")
        step, save = training.optim_step(ADAM), training.save_state("a")
        wait_until(lambda: all(re.search(pattern, caplog.text) for pattern in patterns), "both log lines")
        gate.release()
        step.result(TEST_TIMEOUT_S)
        save.result(TEST_TIMEOUT_S)
        number = len(statuses)
        pass_time(10.0)
    assert len(statuses) == number
    assert {"OptimStep", "SaveWeights"} <= {status.request_type for status in statuses}


@pytest.mark.usefixtures("short_intervals")
def test_wait_of_rejected_samples_is_reported(server: ScriptedServer) -> None:
    """The reason of a sample that gets 429 has the server's text."""
    gate = Gate()
    busy = ScriptedResponse({"detail": "all seats taken"}, status=429)
    server.rules["asample"] = lambda request: server.healthy_response(request) if gate.is_open else busy
    statuses: list[tw.WaitStatus] = []
    with open_client(server.url, on_wait=statuses.append) as client:
        sample = client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS)
        wait_until(lambda: any("all seats taken" in status.reason for status in statuses), "the reason")
        gate.release()
        sample.result(TEST_TIMEOUT_S)
