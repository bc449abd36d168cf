"""The user's own decision about retries, ``RetryConfig.retry_if``."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
NOT_YET = ScriptedResponse({"detail": "no such trainer"}, status=404)


def retry_while_starting(error: tw.TinkerError) -> bool | None:
    """Retry 404, which a starting trainer returns; do not retry a full disk; leave the rest to the rules."""
    if isinstance(error, tw.NotFoundError):
        return True
    return False if "disk full" in str(error) else None


def make_policy(**settings: object) -> tw.RetryConfig:
    """Return a fast policy with this decision."""
    return tw.RetryConfig(retry_delay_base=0.001, retry_if=retry_while_starting, **settings)  # type: ignore[arg-type]


def test_true_retries_requests_and_polls(server: ScriptedServer) -> None:
    """The retries have one idempotency key and one seq_id."""
    server.rules["optim_step"] = in_order(NOT_YET, NOT_YET, server.healthy_response)
    server.on_poll("OptimStep", in_order(NOT_YET, ScriptedResponse(status=408), NOT_YET, server.healthy_response))
    with open_client(server.url, retry=make_policy()) as client:
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert [body["seq_id"] for body in server.bodies("optim_step")] == [1, 1, 1]
    assert len({request.headers["x-idempotency-key"] for request in server.named("optim_step")}) == 1
    assert len(server.polls("OptimStep")) == 4


def test_false_ends_requests_and_polls(server: ScriptedServer) -> None:
    """False raises errors that the rules would retry."""
    disk_full = ScriptedResponse({"detail": "disk full"}, status=500)
    server.rules["optim_step"] = in_order(disk_full, server.healthy_response)
    server.on_poll("OptimStep", in_order(disk_full))
    with open_client(server.url, retry=make_policy()) as client:
        training = client.create_lora_training_client("base")
        for _ in range(2):
            with pytest.raises(tw.InternalServerError, match="disk full"):
                training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert len(server.named("optim_step")) == 2
    assert len(server.polls("OptimStep")) == 1


def test_limits_hold_despite_true(server: ScriptedServer) -> None:
    """max_attempts limits requests, and max_elapsed polls."""
    server.rules["optim_step"] = in_order(*[NOT_YET] * 3, server.healthy_response)
    server.on_poll("OptimStep", lambda _: NOT_YET)
    for limit in ({"max_attempts": 3}, {"max_elapsed": 0.1}):
        with open_client(server.url, retry=make_policy(**limit)) as client, pytest.raises(tw.NotFoundError):
            client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
        assert len(server.named("optim_step")) == (3 if "max_attempts" in limit else 4)
    assert server.polls("OptimStep")


def test_false_ends_polls_after_400(server: ScriptedServer) -> None:
    """A poll is retried three times after 400 unless retry_if returns False."""
    server.on_poll("OptimStep", lambda _: ScriptedResponse({"detail": "disk full"}, status=400))
    with open_client(server.url, retry=make_policy()) as client, pytest.raises(tw.BadRequestError):
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert len(server.polls("OptimStep")) == 1


def test_retry_if_is_pickled_but_not_in_handles(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle of a client with retry_if raises an error, as text cannot hold a function."""
    monkeypatch.setenv("TINKER_API_KEY", "tml-secret-0123456789")
    server.rules["asample"] = in_order(NOT_YET, server.healthy_response)
    with open_client(server.url, retry=make_policy()) as client:
        sampling = client.create_sampling_client(base_model="base")
        with pytest.raises(ValueError, match="retry_if"):
            sampling.get_sampler_handle()
        copy = pickle.loads(pickle.dumps(sampling))
        assert copy.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences
        del copy
    assert len(server.named("asample")) == 2


def test_non_function_is_rejected() -> None:
    """The error names the setting."""
    with pytest.raises(TypeError, match="retry_if"):
        tw.RetryConfig(retry_if=404)  # type: ignore[arg-type]


async def later(error: tw.TinkerError) -> bool:
    return True


def test_invalid_decision_is_rejected(server: ScriptedServer) -> None:
    """Async functions and any result other than True, False and None raise an error."""
    with pytest.raises(TypeError, match="retry_if: expected a plain function"):
        tw.RetryConfig(retry_if=later)  # type: ignore[arg-type]
    server.rules["optim_step"] = lambda _: NOT_YET
    decide: Any = lambda _: "no"  # noqa: E731
    with (
        open_client(server.url, retry=tw.RetryConfig(retry_if=decide)) as client,
        pytest.raises(TypeError, match="retry_if must return True, False or None, got 'no'"),
    ):
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert len(server.named("optim_step")) == 1
