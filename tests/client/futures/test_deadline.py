"""The time limit of one sample."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, Gate, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)


def test_a_sample_that_takes_too_long(
    server: ScriptedServer, client: tw.ServiceClient, pass_time: Callable[[float], None]
) -> None:
    """Ends with RequestTimeoutError after its own time, naming request, limit and queue; others go on."""
    hold = Gate()
    paused = ScriptedResponse({"queue_state": "paused_capacity", "queue_state_reason": "no GPUs"}, status=408)
    server.on_poll("Sample", in_order(paused, ScriptedResponse({}, hold=hold)))
    sampling = client.create_sampling_client(base_model="base").result(PATIENCE_S)
    sample = sampling.sample(PROMPT, 1, PARAMS, timeout=50)
    server.wait_for(lambda: len(server.polls("Sample")) == 2, "the word of the queue, and another poll")
    assert not sample.done()
    pass_time(50)
    with pytest.raises(tw.RequestTimeoutError) as caught:
        sample.result(PATIENCE_S)
    assert caught.value.request_id == server.polls("Sample")[0].body["request_id"]
    for part in ("Sample", caught.value.request_id, "timeout=50 s", "paused_capacity: no GPUs"):
        assert part in str(caught.value)
    server.on_poll("Sample", server.healthy_response)
    assert sampling.sample(PROMPT, 1, PARAMS, timeout=PATIENCE_S).result(PATIENCE_S).sequences
    hold.release()


def test_the_limit_counts_what_comes_before(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The creation of the sampler, and the wait for a place among too many, are part of the time."""
    hold = Gate()
    server.rules["create_sampling_session"] = lambda asked: ScriptedResponse(
        server.healthy_response(asked).body, hold=hold
    )
    sampling = client.create_sampling_client(base_model="base")
    with pytest.raises(tw.RequestTimeoutError, match="not submitted"):
        sampling.compute_logprobs(PROMPT, timeout=0.2).result(PATIENCE_S)
    hold.release()


def test_the_server_hears_that_nobody_waits(server: ScriptedServer, pass_time: Callable[[float], None]) -> None:
    """Where it can be told, a sample that took too long is cancelled there."""
    server.rules["client/dynamic_config"] = lambda _: ScriptedResponse({"sample_cancel_enabled": True})
    hold = Gate()
    server.on_poll("Sample", lambda _: ScriptedResponse({}, hold=hold))
    with open_client(server.url, wire_version=None) as client:
        sampling = client.create_sampling_client(base_model="base").result(PATIENCE_S)
        sample = sampling.sample(PROMPT, 1, PARAMS, timeout=50)
        server.wait_for(lambda: len(server.polls("Sample")) == 1, "the poll")
        pass_time(50)
        with pytest.raises(tw.RequestTimeoutError):
            sample.result(PATIENCE_S)
        cancelled = server.wait_for_requests("cancel_future")
    assert cancelled[0].body["request_id"] == server.polls("Sample")[0].body["request_id"]
    hold.release()


@pytest.mark.parametrize("timeout", [0, -1, math.nan, True, "5"])
def test_what_is_no_limit(client: tw.ServiceClient, timeout: object) -> None:
    """Refused before anything is sent."""
    sampling = client.create_sampling_client(base_model="base")
    with pytest.raises((ValueError, TypeError), match="timeout"):
        sampling.sample(PROMPT, 1, PARAMS, timeout=timeout)  # type: ignore[arg-type]
