"""Results that the server loses: the client repeats a sample, and raises an error for a training step."""

from __future__ import annotations

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, open_client
from support.optim_steps import NOT_READY, step_error
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
UNKNOWN = ScriptedResponse({"detail": "unknown request"}, status=404)
UNCLEAR = ScriptedResponse({"detail": "it is over"}, status=404)
"""A 404 whose text does not name a missing request."""
EXPIRED = ScriptedResponse(status=410)
FIRST_RESPONSES = {
    "reset": ScriptedResponse(drop=True),
    "garbage": ScriptedResponse(raw=b"not HTTP at all\r\n\r\n"),
    "cut": ScriptedResponse(raw=b'HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"sequences"'),
    "500": ScriptedResponse(status=500),
    "502": ScriptedResponse(b"<html>", status=502),
    "504": ScriptedResponse(status=504),
    "not ready": ScriptedResponse(status=408),
}


@pytest.mark.parametrize("lost_response", [UNKNOWN, UNCLEAR, EXPIRED], ids=["404", "unclear 404", "410"])
@pytest.mark.parametrize("first", FIRST_RESPONSES.values(), ids=FIRST_RESPONSES)
def test_sample_lost_after_an_error_is_sampled_again(
    server: ScriptedServer, client: tw.ServiceClient, first: ScriptedResponse, lost_response: ScriptedResponse
) -> None:
    """If the result is lost after any response without a result, the client samples again with a new seq_id."""
    server.on_poll("Sample", in_order(first, lost_response, server.healthy_response))
    sampling = client.create_sampling_client(base_model="base")
    assert len(sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences) == 1
    assert [body["seq_id"] for body in server.bodies("asample")] == [0, 1]


@pytest.mark.parametrize("body", [{"detail": "Not Found"}, {"detail": "unknown request"}, b"", {}], ids=str)
def test_sample_unknown_at_its_first_poll_is_sampled_again(
    server: ScriptedServer, client: tw.ServiceClient, body: dict[str, str] | bytes
) -> None:
    """The client also samples again if the server does not know a request id at the first poll."""
    server.on_poll("Sample", in_order(ScriptedResponse(body, status=404), server.healthy_response))
    client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert len(server.named("asample")) == 2


@pytest.mark.parametrize("lost_response", [UNKNOWN, EXPIRED], ids=["404", "410"])
def test_finished_sample_without_a_result_is_sampled_again(
    server: ScriptedServer, lost_response: ScriptedResponse
) -> None:
    """The client samples again if a batched poll reports a sample as finished and its result is missing."""
    cursor = [0]

    def respond(_: RecordedRequest) -> ScriptedResponse:
        new = [f"asample/{n}/{body.get('seq_id')}" for n, body in server.created_futures if "prompt" in body][
            cursor[0] :
        ]
        cursor[0] += len(new)
        completions = [{"request_id": request_id, "cursor": cursor[0]} for request_id in new]
        return ScriptedResponse({"completions": completions, "cursor": cursor[0]}, delay_s=0.0 if new else 0.05)

    server.rules["retrieve_futures"] = respond
    server.rules["join_sampling_session"] = lambda _: ScriptedResponse(
        {"sample_seq_id_start": 0, "cloned_sampler_id": 0}
    )
    server.on_poll("Sample", in_order(lost_response, server.healthy_response))
    config = {"sample_use_retrieve_futures": True}
    with open_client(server.url, wire_version="0.38.0", client_config=config) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert server.named("retrieve_futures")
    assert len(server.named("asample")) == 2


def test_retry_policy_limits_repeated_samples(server: ScriptedServer) -> None:
    """max_attempts and retry_if limit how often the client sends a lost sample."""
    server.on_poll("Sample", lambda _: UNKNOWN)
    no_retries = attrs.evolve(FAST, retry_if=lambda error: False)
    for policy, count in ((attrs.evolve(FAST, max_attempts=3), 3), (no_retries, 1)):
        before = len(server.named("asample"))
        with open_client(server.url, retry=policy) as client, pytest.raises(tw.FutureExpiredError):
            client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        assert len(server.named("asample")) - before == count


@pytest.mark.parametrize("first", FIRST_RESPONSES.values(), ids=FIRST_RESPONSES)
def test_lost_training_result_is_an_error(
    server: ScriptedServer, training: tw.TrainingClient, first: ScriptedResponse
) -> None:
    """The client never repeats a training step, because the server may have executed it."""
    server.on_poll("OptimStep", in_order(first, UNKNOWN))
    with pytest.raises(tw.FutureExpiredError):
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert len(server.named("optim_step")) == 1


def test_expired_training_result_raises_future_expired_error(
    server: ScriptedServer, training: tw.TrainingClient
) -> None:
    """410 for a training step raises FutureExpiredError, because a repeated step would train twice."""
    error = step_error(server, training, ScriptedResponse({"detail": "gone"}, status=410))
    assert isinstance(error, tw.FutureExpiredError)
    assert error.request_id == server.polls("OptimStep")[0].body["request_id"]
    assert len(server.named("optim_step")) == 1


def test_expired_sample_is_repeated_with_a_new_seq_id(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """After 410 the client sends the sample with a new seq_id and a new key, until the server returns a result."""
    expired = ScriptedResponse(status=410)
    server.on_poll("Sample", in_order(expired, expired, server.healthy_response))
    sampling = client.create_sampling_client(base_model="base")
    assert len(sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences) == 1
    assert [body["seq_id"] for body in server.bodies("asample")] == [0, 1, 2]
    assert len({request.headers["x-idempotency-key"] for request in server.named("asample")}) == 3


def test_repeated_sampling_is_limited_to_max_attempts(server: ScriptedServer) -> None:
    """If the server loses every sample, the client sends max_attempts samples, or one if retries are disabled."""
    server.on_poll("Sample", lambda _: ScriptedResponse(status=410))
    for policy, count in ((attrs.evolve(FAST, max_attempts=4), 4), (tw.RetryConfig(enable_retry_logic=False), 5)):
        with open_client(server.url, retry=policy) as client:
            sampling = client.create_sampling_client(base_model="base")
            with pytest.raises(tw.FutureExpiredError):
                sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        assert len(server.named("asample")) == count


def test_repeated_sampling_waits_for_the_retry_delay(server: ScriptedServer) -> None:
    """The client waits for the delay of the policy before it samples again."""
    server.on_poll("Sample", lambda _: ScriptedResponse(status=410))
    policy = tw.RetryConfig(retry_delay_base=0.1, jitter_factor=0.0, max_attempts=3)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.FutureExpiredError):
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
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
    assert sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences
    assert [body["seq_id"] for body in server.bodies("asample")] == [0, 1]
