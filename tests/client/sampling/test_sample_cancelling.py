"""Samples cancelled in flight: the client cancels them on servers that support it, and ignores errors."""

from __future__ import annotations

import gc

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
ENABLED = ScriptedResponse({"sample_cancel_enabled": True, "sample_cancel_max_batch_size": 2})


@pytest.fixture(autouse=True)
def results_gate(server: ScriptedServer) -> Gate:
    """Hold the results of samples until the gate opens."""
    gate = Gate()
    server.on_poll("Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
    return gate


def cancel_samples(client: tw.ServiceClient, count: int) -> list[str]:
    """Cancel that many samples in flight and return their request ids."""
    sampling = client.create_sampling_client(base_model="base")
    futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(count)]
    wait_until(lambda: all(future.request_id for future in futures), "a request id of every sample")
    ids = sorted(future.request_id or "" for future in futures)
    for future in futures:
        assert future.cancel()
    return ids


def check_sampling(client: tw.ServiceClient, results_gate: Gate) -> None:
    """Check that further samples succeed."""
    results_gate.release()
    assert client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)


def test_cancelled_samples_are_cancelled_on_the_server(server: ScriptedServer, results_gate: Gate) -> None:
    """The client cancels each sample once, within the limit of the server, and requests the limit once."""
    server.rules["client/dynamic_config"] = lambda _: ENABLED
    cancellations_gate = Gate()
    server.rules["cancel_future"] = lambda _: ScriptedResponse(gate=cancellations_gate)
    with open_client(server.url, wire_version="0.38.0") as client:
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        assert not server.named("client/dynamic_config")
        ids = cancel_samples(client, 5)
        server.wait_for_requests("cancel_future", 2)
        cancellations_gate.release()
        server.wait_for_requests("cancel_future", 5)
        more_ids = cancel_samples(client, 1)
        server.wait_for_requests("cancel_future", 6)
        check_sampling(client, results_gate)
    assert sorted(body["request_id"] for body in server.bodies("cancel_future")) == sorted(ids + more_ids)
    assert server.peak["cancel_future"] == 2
    assert len(server.named("client/dynamic_config")) == 1


@pytest.mark.parametrize(
    ("response", "options"),
    [
        (ScriptedResponse({"sample_cancel_enabled": False}), {}),
        (ScriptedResponse({}), {}),
        (ScriptedResponse(status=404), {}),
        (ScriptedResponse(status=500), {}),
        (ScriptedResponse(b"<html>"), {}),
        (ScriptedResponse(drop=True), {}),
        (ENABLED, {"wire_version": "0.26.1"}),
        (ENABLED, {"wire_version": "0.16.1"}),
    ],
    ids=str,
)
def test_no_cancellation_is_sent_if_the_server_does_not_support_it(
    server: ScriptedServer, results_gate: Gate, response: ScriptedResponse, options: dict[str, str]
) -> None:
    """Without the setting, the endpoint or the wire version the client sends no cancellation."""
    server.rules["client/dynamic_config"] = lambda _: response
    with open_client(server.url, **{"wire_version": "0.38.0", **options}) as client:
        for _ in range(2):
            cancel_samples(client, 1)
            wait_until(lambda: not client._session.sample_canceller._queue, "an empty queue")
        check_sampling(client, results_gate)
    assert not server.named("cancel_future")
    assert len(server.named("client/dynamic_config")) == ("wire_version" not in options)


@pytest.mark.parametrize(
    "response",
    [
        ScriptedResponse(status=500),
        ScriptedResponse(status=404),
        ScriptedResponse(drop=True),
        ScriptedResponse(gate=Gate()),
    ],
    ids=["500", "404", "drop", "results_gate"],
)
def test_failed_cancellation_has_no_effect(
    server: ScriptedServer, results_gate: Gate, response: ScriptedResponse, caplog: pytest.LogCaptureFixture
) -> None:
    """After any response the client does not retry the cancellation; later samples and close() succeed."""
    server.rules["client/dynamic_config"] = lambda _: ENABLED
    server.rules["cancel_future"] = lambda _: response
    with open_client(server.url, wire_version="0.38.0") as client:
        cancel_samples(client, 1)
        server.wait_for_requests("cancel_future")
        check_sampling(client, results_gate)
    gc.collect()
    assert len(server.named("cancel_future")) == 1
    assert not caplog.records


def test_only_samples_in_flight_are_cancelled_on_the_server(server: ScriptedServer, results_gate: Gate) -> None:
    """The client does not cancel samples without a request id, finished samples and other operations."""
    server.rules["client/dynamic_config"] = lambda _: ENABLED
    submission = Gate()

    def hold_submission(request: RecordedRequest) -> ScriptedResponse:
        return ScriptedResponse(server.healthy_response(request).body, gate=submission)

    server.rules["asample"] = hold_submission
    server.on_poll("OptimStep", lambda _: ScriptedResponse(gate=Gate()))
    with open_client(server.url, wire_version="0.38.0") as client:
        sampling = client.create_sampling_client(base_model="base")
        unsent = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for_requests("asample")
        unsent.cancel()
        step = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) == 1, "the poll of the step")
        step.cancel()
        submission.release()
        results_gate.release()
        finished = sampling.sample(PROMPT, 1, PARAMS)
        finished.result(TEST_TIMEOUT_S)
        assert not finished.cancel()
    assert not server.named("client/dynamic_config")
