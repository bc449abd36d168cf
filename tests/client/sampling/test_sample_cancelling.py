"""Samples cancelled in flight: the server is told where it wants to know, and nothing depends on that."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client, wait_until
from support.scripted import PATIENCE_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
ENABLED = ScriptedResponse({"sample_cancel_enabled": True, "sample_cancel_max_batch_size": 2})


@pytest.fixture(autouse=True)
def held(server: ScriptedServer) -> Gate:
    """Holds back the results of samples."""
    hold = Gate()
    server.on_poll("Sample", lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold))
    return hold


def cancel_some(server: ScriptedServer, client: tw.ServiceClient, number: int) -> list[str]:
    """The ids of samples that were cancelled while they were polled."""
    sampling = client.create_sampling_client(base_model="base")
    futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(number)]
    wait_until(lambda: all(future.request_id for future in futures), "all are taken")
    ids = sorted(future.request_id or "" for future in futures)
    for future in futures:
        assert future.cancel()
    return ids


def goes_on(server: ScriptedServer, client: tw.ServiceClient, hold: Gate) -> None:
    """Samples still come."""
    hold.release()
    assert client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)


def test_the_server_is_told(server: ScriptedServer, held: Gate) -> None:
    """Each cancelled sample once, no more at a time than it wants; the settings are asked for once, when needed."""
    server.rules["client/dynamic_config"] = lambda _: ENABLED
    told = Gate()
    server.rules["cancel_future"] = lambda _: ScriptedResponse(hold=told)
    with open_client(server.url, wire_version="0.38.0") as client:
        client.create_sampling_client(base_model="base").result(PATIENCE_S)
        assert not server.named("client/dynamic_config")
        ids = cancel_some(server, client, 5)
        server.wait_for_requests("cancel_future", 2)
        told.release()
        server.wait_for_requests("cancel_future", 5)
        more = cancel_some(server, client, 1)
        server.wait_for_requests("cancel_future", 6)
        goes_on(server, client, held)
    assert sorted(body["request_id"] for body in server.bodies("cancel_future")) == sorted(ids + more)
    assert server.peak["cancel_future"] == 2
    assert len(server.named("client/dynamic_config")) == 1


@pytest.mark.parametrize(
    ("answer", "options"),
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
def test_a_server_that_does_not_want_to_know(
    server: ScriptedServer, held: Gate, answer: ScriptedResponse, options: dict[str, Any]
) -> None:
    """Without the setting, the call or the wire version nothing is sent; the settings are asked for once at most."""
    server.rules["client/dynamic_config"] = lambda _: answer
    with open_client(server.url, **{"wire_version": "0.38.0", **options}) as client:
        for _ in range(2):
            cancel_some(server, client, 1)
            wait_until(lambda: not client._session.sample_canceller._queue, "nothing waits")
        goes_on(server, client, held)
    assert not server.named("cancel_future")
    assert len(server.named("client/dynamic_config")) == ("wire_version" not in options)


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedResponse(status=500),
        ScriptedResponse(status=404),
        ScriptedResponse(drop=True),
        ScriptedResponse(hold=Gate()),
    ],
    ids=["500", "404", "drop", "held"],
)
def test_a_refused_cancellation_disturbs_nobody(
    server: ScriptedServer, held: Gate, answer: ScriptedResponse, caplog: pytest.LogCaptureFixture
) -> None:
    """It is sent once, not again, whatever comes back; later samples come, and close is not held up."""
    server.rules["client/dynamic_config"] = lambda _: ENABLED
    server.rules["cancel_future"] = lambda _: answer
    with open_client(server.url, wire_version="0.38.0") as client:
        cancel_some(server, client, 1)
        server.wait_for_requests("cancel_future")
        goes_on(server, client, held)
    gc.collect()
    assert len(server.named("cancel_future")) == 1
    assert not caplog.records


def test_only_samples_in_flight(server: ScriptedServer, held: Gate) -> None:
    """A sample that was not sent, one that is done, and other operations are not told of; nor is what close ends."""
    server.rules["client/dynamic_config"] = lambda _: ENABLED
    taken = Gate()

    def hold_samples(asked: RecordedRequest) -> ScriptedResponse:
        return ScriptedResponse(server.healthy_response(asked).body, hold=taken)

    server.rules["asample"] = hold_samples
    server.on_poll("OptimStep", lambda _: ScriptedResponse(hold=Gate()))
    with open_client(server.url, wire_version="0.38.0") as client:
        sampling = client.create_sampling_client(base_model="base")
        sending = sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for_requests("asample")
        sending.cancel()
        step = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) == 1, "the poll of the step")
        step.cancel()
        taken.release()
        held.release()
        done = sampling.sample(PROMPT, 1, PARAMS)
        done.result(PATIENCE_S)
        assert not done.cancel()
    assert not server.named("client/dynamic_config")
