"""Tests of the time limit of one sample."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)


def test_late_sample_raises_with_request_limit_and_queue(
    server: ScriptedServer, client: tw.ServiceClient, pass_time: Callable[[float], None]
) -> None:
    """A sample ends with RequestTimeoutError at its own limit; other samples continue."""
    gate = Gate()
    paused = ScriptedResponse({"queue_state": "paused_capacity", "queue_state_reason": "no GPUs"}, status=408)
    server.on_poll("Sample", in_order(paused, ScriptedResponse({}, gate=gate)))
    sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    sample = sampling.sample(PROMPT, 1, PARAMS, timeout=50)
    server.wait_for(lambda: len(server.polls("Sample")) == 2, "a poll with the state of the queue, and another poll")
    assert not sample.done()
    pass_time(50)
    with pytest.raises(tw.RequestTimeoutError) as caught:
        sample.result(TEST_TIMEOUT_S)
    assert caught.value.request_id == server.polls("Sample")[0].body["request_id"]
    for text in ("Sample", caught.value.request_id, "timeout=50 s", "paused_capacity: no GPUs"):
        assert text in str(caught.value)
    server.on_poll("Sample", server.healthy_response)
    assert sampling.sample(PROMPT, 1, PARAMS, timeout=TEST_TIMEOUT_S).result(TEST_TIMEOUT_S).sequences
    gate.release()


def test_limit_includes_the_creation_of_the_sampler(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The error reports that the sample was not submitted."""
    gate = Gate()
    server.rules["create_sampling_session"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=gate
    )
    sampling = client.create_sampling_client(base_model="base")
    with pytest.raises(tw.RequestTimeoutError, match="not submitted"):
        sampling.compute_logprobs(PROMPT, timeout=0.2).result(TEST_TIMEOUT_S)
    gate.release()


def test_late_sample_is_cancelled_on_the_server(server: ScriptedServer, pass_time: Callable[[float], None]) -> None:
    """The client sends cancel_future if the server supports it."""
    server.rules["client/dynamic_config"] = lambda _: ScriptedResponse({"sample_cancel_enabled": True})
    gate = Gate()
    server.on_poll("Sample", lambda _: ScriptedResponse({}, gate=gate))
    with open_client(server.url, wire_version=None) as client:
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        sample = sampling.sample(PROMPT, 1, PARAMS, timeout=50)
        server.wait_for(lambda: len(server.polls("Sample")) == 1, "the poll")
        pass_time(50)
        with pytest.raises(tw.RequestTimeoutError):
            sample.result(TEST_TIMEOUT_S)
        cancelled = server.wait_for_requests("cancel_future")
    assert cancelled[0].body["request_id"] == server.polls("Sample")[0].body["request_id"]
    gate.release()


@pytest.mark.parametrize("timeout", [0, -1, math.nan, True, "5"])
def test_invalid_timeout_raises_before_a_request(
    server: ScriptedServer, client: tw.ServiceClient, timeout: object
) -> None:
    """The call raises, and the server receives no sample."""
    sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    with pytest.raises((ValueError, TypeError), match="timeout"):
        sampling.sample(PROMPT, 1, PARAMS, timeout=timeout)  # type: ignore[arg-type]
    assert not server.named("asample")
