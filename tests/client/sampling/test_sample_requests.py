"""Options of a sample about its prompt, on servers that support them and on servers that ignore them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import FAST, PARAMS, open_client
from support.embedded import embedded_http_server
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(120)
TOKENS = [72, 101, 108, 108, 111]
PROMPT = tw.ModelInput.from_ints(TOKENS)
NANO = "tinkerwire/byte-nano"
Options = dict[str, Any]


def make_ids(*rows: list[int]) -> tw.TensorData:
    """Return a tensor of token ids."""
    return tw.TensorData.from_numpy(np.array(rows))


INVALID_OPTIONS: dict[str, tuple[Options, str]] = {
    "negative k": ({"prompt_alt_tokens_k": -1}, "prompt_alt_tokens_k must be at least 0, got -1"),
    "last zero": (
        {"prompt_logprobs_last_n": 0, "include_prompt_logprobs": True},
        "prompt_logprobs_last_n must be at least 1, got 0",
    ),
    "last without logprobs": ({"prompt_logprobs_last_n": 2}, "set include_prompt_logprobs"),
    "including the first": ({"prompt_logprobs_last_n": 5, "include_prompt_logprobs": True}, "at most 4"),
    "row for the first": ({"target_prompt_logprobs": make_ids(*[[1]] * 5)}, "expected 4 rows for a prompt of 5 tokens"),
    "one dimension": (
        {"target_prompt_logprobs": tw.TensorData(data=[1, 2, 3, 4], dtype="int64")},
        r"two dimensions, got int64 of shape \(4,\)",
    ),
    "fractional tokens": (
        {"target_prompt_logprobs": tw.TensorData.from_numpy(np.zeros((4, 1)))},
        "expected an int64 tensor of two",
    ),
}


@pytest.mark.parametrize(("options", "text"), INVALID_OPTIONS.values(), ids=INVALID_OPTIONS)
def test_impossible_option_is_rejected_before_sending(server: ScriptedServer, options: Options, text: str) -> None:
    """An impossible option raises ValueError with the numbers, before a request."""
    with open_client(server.url, wire_version="0.38.0") as client:
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        with pytest.raises(ValueError, match=text):
            sampling.sample(PROMPT, 1, PARAMS, **options)
    assert not server.named("asample")


@pytest.mark.parametrize(
    ("options", "fields", "text"),
    [
        ({"prompt_alt_tokens_k": 2}, {}, "expected prompt_alt_tokens_k=2 tokens per position, got none"),
        (
            {"prompt_logprobs_last_n": 2, "include_prompt_logprobs": True},
            {"prompt_logprobs": [None, -1.0, -1.0, -1.0, -1.0]},
            "got values before the last 2 tokens",
        ),
    ],
    ids=["prompt_alt_tokens_k", "prompt_logprobs_last_n"],
)
def test_option_that_the_server_ignores_is_an_error(
    server: ScriptedServer, options: Options, fields: dict[str, object], text: str
) -> None:
    """A response that ignores an option, and could therefore be misread, raises an error."""
    server.on_poll(
        "Sample", lambda _: ScriptedResponse({"sequences": [{"stop_reason": "length", "tokens": [5]}], **fields})
    )
    with open_client(server.url, wire_version="0.38.0") as client:
        sampling = client.create_sampling_client(base_model="base")
        with pytest.raises(tw.APIResponseValidationError, match=text):
            sampling.sample(PROMPT, 1, PARAMS, **options).result(TEST_TIMEOUT_S)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Run an embedded server and return its URL."""
    with embedded_http_server("--wire", "0.38.0") as address:
        yield address


@pytest.fixture
def service(url: str) -> Iterator[tw.ServiceClient]:
    """Open a client of the embedded server."""
    with tw.ServiceClient(base_url=url, retry=FAST) as client:
        yield client


def sample(sampling: tw.SamplingClient, temperature: float = 1.0, **options: Any) -> tw.SampleResponse:
    """Sample once with a fixed seed."""
    params = tw.SamplingParams(max_tokens=6, seed=3, temperature=temperature)
    return sampling.sample(PROMPT, 1, params, **options).result(TEST_TIMEOUT_S)


def test_target_tokens_get_their_logprobs(service: tw.ServiceClient) -> None:
    """Each prompt token but the first has a row of targets; -1 gives NaN, and sparse targets give sparse logprobs."""
    sampling = service.create_sampling_client(base_model=NANO)
    targets = np.full((4, 3), -1)
    targets[:, 1], targets[3, 2] = TOKENS[1:], 7
    dense = sample(sampling, include_prompt_logprobs=True, target_prompt_logprobs=tw.TensorData.from_numpy(targets))
    assert dense.target_prompt_logprobs is not None
    assert dense.prompt_logprobs is not None
    logprobs = dense.target_prompt_logprobs.to_numpy()
    np.testing.assert_array_equal(np.isnan(logprobs), targets == -1)
    np.testing.assert_allclose(logprobs[:, 1], np.array(dense.prompt_logprobs[1:], float), atol=1e-5)
    # The columns of a row need not be in order.
    sparse = tw.TensorData(
        data=[101, 7, 111],
        dtype="int64",
        shape=[4, 3],
        sparse_crow_indices=[0, 1, 1, 1, 3],
        sparse_col_indices=[1, 2, 1],
    )
    sparse_logprobs = sample(sampling, target_prompt_logprobs=sparse).target_prompt_logprobs
    assert sparse_logprobs is not None
    np.testing.assert_array_equal(sparse_logprobs.sparse_crow_indices, [0, 1, 1, 1, 3])
    np.testing.assert_array_equal(sparse_logprobs.sparse_col_indices, [1, 2, 1])
    np.testing.assert_allclose(sparse_logprobs.values(), [logprobs[0, 1], logprobs[3, 2], logprobs[3, 1]], atol=1e-5)


def test_alternative_tokens_do_not_change_the_sample(service: tw.ServiceClient) -> None:
    """Alternative tokens are sampled with their logprobs, are the likeliest if greedy, and do not change the sample."""
    sampling = service.create_sampling_client(base_model=NANO)
    with_alternatives, without = sample(sampling, prompt_alt_tokens_k=50), sample(sampling)
    assert with_alternatives.sequences[0].tokens == without.sequences[0].tokens
    assert without.prompt_alt_tokens is None
    alternatives = with_alternatives.prompt_alt_tokens
    assert alternatives is not None
    tokens, logprobs = alternatives.tokens.to_numpy(), alternatives.logprobs.to_numpy()
    assert tokens.shape == logprobs.shape == (4, 50)
    assert all(len(set(row)) > 10 for row in tokens.tolist())
    expected = sample(sampling, target_prompt_logprobs=alternatives.tokens).target_prompt_logprobs
    assert expected is not None
    np.testing.assert_allclose(logprobs, expected.to_numpy(), atol=1e-5)
    greedy = sample(sampling, prompt_alt_tokens_k=2, topk_prompt_logprobs=1, temperature=0.0)
    assert greedy.prompt_alt_tokens is not None
    assert greedy.topk_prompt_logprobs is not None
    best_tokens = [candidates[0][0] for candidates in greedy.topk_prompt_logprobs[1:] if candidates]
    assert greedy.prompt_alt_tokens.tokens.to_numpy().tolist() == [[token, token] for token in best_tokens]


def test_inflight_clients_share_the_newest_weights(service: tw.ServiceClient) -> None:
    """All inflight clients of a model sample from the newest inflight save; snapshots do not change."""
    training = service.create_lora_training_client(NANO, rank=4, seed=1)
    snapshot = training.save_weights_and_get_sampling_client()
    first = training.save_weights_and_get_sampling_client(kind="inflight").result(TEST_TIMEOUT_S)

    def score(client: tw.SamplingClient) -> list[float]:
        logprobs = client.compute_logprobs(PROMPT).result(TEST_TIMEOUT_S)
        return [value for value in logprobs if value is not None]

    before = score(snapshot)
    assert score(first) == before
    inputs = {"target_tokens": TOKENS[1:], "weights": [1.0] * 4}
    datum = tw.Datum(model_input=tw.ModelInput.from_ints(TOKENS[:-1]), loss_fn_inputs=inputs)
    training.forward_backward([datum], "cross_entropy")
    training.optim_step(tw.AdamParams(learning_rate=0.05)).result(TEST_TIMEOUT_S)
    assert score(first) == before
    second = training.save_weights_and_get_sampling_client(kind="inflight").result(TEST_TIMEOUT_S)
    after = score(second)
    assert sum(after) > sum(before)
    assert score(first) == after
    assert score(snapshot) == before
    with pytest.raises(ValueError, match="name: inflight weights cannot be saved under a name, got 'a'"):
        training.save_weights_and_get_sampling_client("a", kind="inflight")
