"""Lost results: the client resends a sample, and raises an error for a training step."""

from __future__ import annotations

import attrs
import pytest

import tinkerwire as tw
from support.clients import FAST, PARAMS, PROMPT, open_client
from support.optim_steps import NOT_READY, step_error
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)


def test_expired_training_result_raises_future_expired_error(
    server: ScriptedServer, training: tw.TrainingClient
) -> None:
    """410 for a training step raises FutureExpiredError, because a repeated step would train twice."""
    error = step_error(server, training, ScriptedResponse({"detail": "gone"}, status=410))
    assert isinstance(error, tw.FutureExpiredError)
    assert error.request_id == server.polls("OptimStep")[0].body["request_id"]
    assert len(server.named("optim_step")) == 1


def test_expired_sample_is_sent_again_with_a_new_seq_id(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """After 410 the client sends the sample with a new seq_id and a new key, until the server returns a result."""
    expired = ScriptedResponse(status=410)
    server.on_poll("Sample", in_order(expired, expired, server.healthy_response))
    sampling = client.create_sampling_client(base_model="base")
    assert len(sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S).sequences) == 1
    assert [body["seq_id"] for body in server.bodies("asample")] == [0, 1, 2]
    assert len({request.headers["x-idempotency-key"] for request in server.named("asample")}) == 3


def test_repeated_sampling_is_limited_to_max_attempts(server: ScriptedServer) -> None:
    """If the server loses every sample, the client sends max_attempts samples, or one if retries are disabled."""
    server.on_poll("Sample", lambda _: ScriptedResponse(status=410))
    for policy, count in ((attrs.evolve(FAST, max_attempts=4), 4), (tw.RetryConfig(enable_retry_logic=False), 5)):
        with open_client(server.url, retry=policy) as client:
            sampling = client.create_sampling_client(base_model="base")
            with pytest.raises(tw.FutureExpiredError):
                sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
        assert len(server.named("asample")) == count


def test_repeated_sampling_waits_for_the_retry_delay(server: ScriptedServer) -> None:
    """The client waits for the delay of the policy before it samples again."""
    server.on_poll("Sample", lambda _: ScriptedResponse(status=410))
    policy = tw.RetryConfig(retry_delay_base=0.1, jitter_factor=0.0, max_attempts=3)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.FutureExpiredError):
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    first, second, third = (request.time for request in server.named("asample"))
    assert second - first >= 0.1
    assert third - second >= 0.2


@pytest.mark.parametrize("first", [NOT_READY, ScriptedResponse({"type": "try_again"})], ids=str)
def test_result_that_is_unknown_after_not_ready_is_lost(
    server: ScriptedServer, training: tw.TrainingClient, client: tw.ServiceClient, first: ScriptedResponse
) -> None:
    """404 after "not ready" means a lost result: a training step raises an error, the client repeats a sample."""
    unknown = ScriptedResponse({"detail": "Future not found"}, status=404)
    error = step_error(server, training, first, unknown)
    assert isinstance(error, tw.FutureExpiredError)
    assert isinstance(error.__cause__, tw.NotFoundError)
    for part in ("OptimStep", "HTTP 404", "Future not found", error.request_id):
        assert part in str(error)
    assert len(server.named("optim_step")) == 1
    server.on_poll("Sample", in_order(first, unknown, server.healthy_response))
    sampling = client.create_sampling_client(base_model="base")
    assert sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S).sequences
    assert [body["seq_id"] for body in server.bodies("asample")] == [0, 1]
