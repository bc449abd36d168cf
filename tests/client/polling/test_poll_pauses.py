"""Pauses between polls: a server that responds at once is not polled in a hot loop."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client
from support.optim_steps import NOT_READY, OPTIM_STEP_RESULT, step_metrics
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._polling import poller
from tinkerwire._transport.poll_connections import PollLimit

pytestmark = pytest.mark.timeout(60)


def measure_polls(server: ScriptedServer, response: ScriptedResponse, count: int, policy: tw.RetryConfig) -> float:
    """Return the duration of that many polls if the server sends the same response at once to each."""
    server.on_poll("OptimStep", lambda _: response)
    with open_client(server.url, retry=policy) as client:
        client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) >= count, f"{count} polls")
    times = [request.time for request in server.polls("OptimStep")]
    return times[count - 1] - times[0]


@pytest.mark.parametrize("response", [NOT_READY, ScriptedResponse({"type": "try_again"})], ids=str)
def test_immediate_not_ready_responses_are_polled_with_pauses(
    server: ScriptedServer, response: ScriptedResponse
) -> None:
    """The client polls a few times a second if the server sends "not ready" at once."""
    assert measure_polls(server, response, 7, tw.RetryConfig()) > 1.0


@pytest.mark.parametrize("status", [500, 503])
def test_immediate_server_errors_are_polled_with_pauses(server: ScriptedServer, status: int) -> None:
    """With the default policy the client polls a few times a second if the server fails at once."""
    assert measure_polls(server, ScriptedResponse(status=status), 3, tw.RetryConfig()) > 1.0


def test_held_poll_is_repeated_without_a_pause(
    server: ScriptedServer, training: tw.TrainingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client does not pause after a poll that the server has held for long."""
    monkeypatch.setattr(poller, "MIN_HELD_S", 0.05)
    monkeypatch.setattr(poller, "FIRST_PAUSE_S", 300.0)
    held_poll = ScriptedResponse(status=408, delay_s=0.06)
    assert step_metrics(server, training, held_poll, held_poll, held_poll, OPTIM_STEP_RESULT) == {"x:mean": 1.0}


def test_few_samples_are_polled_often(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between polls for a sample stay short while few samples are in flight."""
    monkeypatch.setattr(poller, "FIRST_PAUSE_S", 300.0)
    server.on_poll("Sample", in_order(NOT_READY, NOT_READY, server.healthy_response))
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        assert len(server.polls("Sample")) == 3


@pytest.mark.parametrize("is_held", [True, False])
def test_polls_of_samples_show_whether_the_server_holds_polls(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, is_held: bool
) -> None:
    """Polls that the server holds leave the number of samples in flight limited; other polls lift the limit."""
    monkeypatch.setattr(poller, "MIN_HELD_S", 0.05 if is_held else 60.0)
    unready = ScriptedResponse(status=408, delay_s=0.06)
    server.on_poll("Sample", in_order(unready, unready, server.healthy_response))
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        sample_polls = client._connection.poll_connections
        sample_polls.limit = PollLimit(0, "the test allows none")
        assert sample_polls.has_free is not is_held


def test_retry_after_of_a_429_sets_the_pause(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The client waits for the Retry-After of a 429 before the next poll."""
    step_metrics(
        server, training, ScriptedResponse({}, status=429, headers={"retry-after-ms": "300"}), OPTIM_STEP_RESULT
    )
    first, second = server.polls("OptimStep")
    assert second.time - first.time >= 0.3


def test_retry_after_zero_keeps_the_pauses_of_the_policy(server: ScriptedServer) -> None:
    """The client ignores ``Retry-After: 0`` and pauses as the policy defines."""
    busy = ScriptedResponse({}, status=429, headers={"retry-after": "0"})
    policy = tw.RetryConfig(retry_delay_base=0.1, retry_delay_max=0.1, jitter_factor=0)
    assert measure_polls(server, busy, 4, policy) >= 0.3
