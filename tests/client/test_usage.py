"""Tests of usage counters: tokens of results, and the load of sampling."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from support.clients import FAST, PARAMS, PROMPT, datum, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)


def test_usage_counts_tokens_of_batches(server: ScriptedServer) -> None:
    """Each chunk counts once its result arrives, for its client and the service; failed chunks do not count."""
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=2)) as client:
        first, second = (client.create_lora_training_client("base") for _ in range(2))
        first.forward_backward([datum(1, 2, 3), datum(4), datum(5, 6)], "cross_entropy").result(TEST_TIMEOUT_S)
        second.forward([datum(1, 2)], "cross_entropy").result(TEST_TIMEOUT_S)
        server.on_poll("Forward", lambda _: ScriptedResponse({"error": "no"}))
        with pytest.raises(tw.RequestFailedError):
            second.forward([datum(1, 2)], "cross_entropy").result(TEST_TIMEOUT_S)
        assert first.usage == tw.Usage(trained_tokens=6)
        assert second.usage == tw.Usage(forward_tokens=2)
        assert client.usage == tw.Usage(trained_tokens=6, forward_tokens=2)


def test_usage_counts_tokens_of_samples(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A prompt counts once, each sample counts, images of unknown length do not."""
    sampling = client.create_sampling_client(base_model="base")
    sequence = {"stop_reason": "stop", "tokens": [1, 2, 3], "logprobs": None}
    response = {"sequences": [sequence, sequence], "prompt_cache_hit_tokens": 1}
    server.on_poll("Sample", in_order(ScriptedResponse(response), server.healthy_response))
    sampling.sample(PROMPT, 2, PARAMS).result(TEST_TIMEOUT_S)
    expected = tw.Usage(prompt_tokens=2, cached_prompt_tokens=1, sampled_tokens=6)
    assert sampling.usage == client.usage == expected
    image = tw.types.ImageChunk(data=b"x", format="png")
    pictured = tw.ModelInput(chunks=[tw.EncodedTextChunk(tokens=[7]), image])
    sampling.sample(pictured, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert sampling.usage == expected + tw.Usage(prompt_tokens=1, sampled_tokens=2)


def test_load_counts_requests_window_and_push_backs(server: ScriptedServer) -> None:
    """The load has requests in flight and waiting, the window after a push-back, and the number of push-backs."""
    gate = Gate()
    busy = ScriptedResponse({}, status=429, headers={"retry-after-ms": "1"})
    server.rules["asample"] = in_order(busy, server.healthy_response)
    server.on_poll("Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
    with open_client(server.url, retry=tw.RetryConfig(max_connections=2, retry_delay_base=0.001)) as client:
        sampling = client.create_sampling_client(base_model="base")
        assert sampling.load == tw.SamplingLoad(in_flight=0, waiting=0, window=2, ceiling=2, push_backs=0)
        samples = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(3)]
        server.wait_for(lambda: len(server.polls("Sample")) == 1, "one is in flight")
        wait_until(lambda: sampling.load.push_backs == 1, "the other was pushed back")
        load = sampling.load
        assert (load.in_flight + load.waiting, load.ceiling, load.push_backs) == (3, 2, 1)
        assert load.window < 2
        gate.release()
        for sample in samples:
            sample.result(TEST_TIMEOUT_S)
        assert (sampling.load.in_flight, sampling.load.waiting) == (0, 0)


def test_client_with_retry_config_has_separate_load(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """RetryConfig.max_connections limits the service or one client."""
    separate_client = client.create_sampling_client(base_model="base", retry_config=tw.RetryConfig(max_connections=3))
    assert separate_client.load.ceiling == 3
    assert client.create_sampling_client(base_model="base").load.ceiling == FAST.max_connections
