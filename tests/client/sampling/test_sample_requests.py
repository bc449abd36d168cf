"""Questions about the prompt: refused, answered by a server that knows them, or passed over by one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import FAST, PARAMS, open_client
from support.embedded import embedded_http_server
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(120)
TOKENS = [72, 101, 108, 108, 111]
PROMPT = tw.ModelInput.from_ints(TOKENS)
NANO = "tinkerwire/byte-nano"


def ids(*rows: list[int]) -> tw.TensorData:
    return tw.TensorData.from_numpy(np.array(rows))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "less than none": ({"prompt_alt_tokens_k": -1}, "prompt_alt_tokens_k must be at least 0, got -1"),
    "the last none": (
        {"prompt_logprobs_last_n": 0, "include_prompt_logprobs": True},
        "prompt_logprobs_last_n must be at least 1, got 0",
    ),
    "the last of none": ({"prompt_logprobs_last_n": 2}, "set include_prompt_logprobs"),
    "the first, too": ({"prompt_logprobs_last_n": 5, "include_prompt_logprobs": True}, "at most 4"),
    "a row for the first": ({"target_prompt_logprobs": ids(*[[1]] * 5)}, "expected 4 rows for a prompt of 5 tokens"),
    "no rows": (
        {"target_prompt_logprobs": tw.TensorData(data=[1, 2, 3, 4], dtype="int64")},
        r"two dimensions, got int64 of shape \(4,\)",
    ),
    "parts of tokens": (
        {"target_prompt_logprobs": tw.TensorData.from_numpy(np.zeros((4, 1)))},
        "expected an int64 tensor of two",
    ),
}


@pytest.mark.parametrize(("question", "text"), WRONG.values(), ids=WRONG)
def test_what_nobody_can_answer(server: ScriptedServer, question: dict[str, Any], text: str) -> None:
    """It is refused before anything is sent, with the numbers."""
    with open_client(server.url, wire_version="0.38.0") as client:
        sampling = client.create_sampling_client(base_model="base").result(PATIENCE_S)
        with pytest.raises(ValueError, match=text):
            sampling.sample(PROMPT, 1, PARAMS, **question)
    assert not server.named("asample")


@pytest.mark.parametrize(
    ("question", "answer", "text"),
    [
        ({"prompt_alt_tokens_k": 2}, {}, "expected prompt_alt_tokens_k=2 tokens per position, got none"),
        (
            {"prompt_logprobs_last_n": 2, "include_prompt_logprobs": True},
            {"prompt_logprobs": [None, -1.0, -1.0, -1.0, -1.0]},
            "got values before the last 2 tokens",
        ),
    ],
    ids=["alternatives", "the last two"],
)
def test_what_a_server_passes_over(server: ScriptedServer, question: Any, answer: Any, text: str) -> None:
    """An answer that would be taken for another one is an error."""
    server.on_poll(
        "Sample", lambda _: ScriptedResponse({"sequences": [{"stop_reason": "length", "tokens": [5]}], **answer})
    )
    with open_client(server.url, wire_version="0.38.0") as client:
        sampling = client.create_sampling_client(base_model="base")
        with pytest.raises(tw.APIResponseValidationError, match=text):
            sampling.sample(PROMPT, 1, PARAMS, **question).result(PATIENCE_S)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with embedded_http_server("--wire", "0.38.0") as found:
        yield found


@pytest.fixture
def service(url: str) -> Iterator[tw.ServiceClient]:
    with tw.ServiceClient(base_url=url, retry=FAST) as found:
        yield found


def sampled(sampling: tw.SamplingClient, **question: Any) -> tw.SampleResponse:
    params = tw.SamplingParams(max_tokens=6, seed=3, temperature=question.pop("temperature", 1.0))
    return sampling.sample(PROMPT, 1, params, **question).result(PATIENCE_S)


def test_target_tokens(service: tw.ServiceClient) -> None:
    """Each row is about one token of the prompt but the first; -1 asks nothing; sparse is answered sparse."""
    sampling = service.create_sampling_client(base_model=NANO)
    targets = np.full((4, 3), -1)
    targets[:, 1], targets[3, 2] = TOKENS[1:], 7
    dense = sampled(sampling, include_prompt_logprobs=True, target_prompt_logprobs=tw.TensorData.from_numpy(targets))
    assert dense.target_prompt_logprobs is not None
    found = dense.target_prompt_logprobs.to_numpy()
    np.testing.assert_array_equal(np.isnan(found), targets == -1)
    np.testing.assert_allclose(found[:, 1], np.array(dense.prompt_logprobs[1:], float), atol=1e-5)
    # The columns of a row need not be in order.
    sparse = tw.TensorData(
        data=[101, 7, 111],
        dtype="int64",
        shape=[4, 3],
        sparse_crow_indices=[0, 1, 1, 1, 3],
        sparse_col_indices=[1, 2, 1],
    )
    answer = sampled(sampling, target_prompt_logprobs=sparse).target_prompt_logprobs
    assert answer is not None
    np.testing.assert_array_equal(answer.sparse_crow_indices, [0, 1, 1, 1, 3])
    np.testing.assert_array_equal(answer.sparse_col_indices, [1, 2, 1])
    np.testing.assert_allclose(answer.values(), [found[0, 1], found[3, 2], found[3, 1]], atol=1e-5)


def test_alternatives(service: tw.ServiceClient) -> None:
    """Tokens of the model's own choice with their logprobs; greedy ones are the likeliest; samples stay the same."""
    sampling = service.create_sampling_client(base_model=NANO)
    with_them, without = sampled(sampling, prompt_alt_tokens_k=50), sampled(sampling)
    assert with_them.sequences[0].tokens == without.sequences[0].tokens
    assert without.prompt_alt_tokens is None
    drawn = with_them.prompt_alt_tokens
    assert drawn is not None
    tokens, logprobs = drawn.tokens.to_numpy(), drawn.logprobs.to_numpy()
    assert tokens.shape == logprobs.shape == (4, 50)
    assert all(len(set(row)) > 10 for row in tokens.tolist())
    asked = sampled(sampling, target_prompt_logprobs=drawn.tokens).target_prompt_logprobs
    assert asked is not None
    np.testing.assert_allclose(logprobs, asked.to_numpy(), atol=1e-5)
    greedy = sampled(sampling, prompt_alt_tokens_k=2, topk_prompt_logprobs=1, temperature=0.0)
    assert greedy.prompt_alt_tokens is not None
    assert greedy.topk_prompt_logprobs is not None
    likeliest = [places[0][0] for places in greedy.topk_prompt_logprobs[1:] if places]
    assert greedy.prompt_alt_tokens.tokens.to_numpy().tolist() == [[token, token] for token in likeliest]


def test_inflight_weights(service: tw.ServiceClient) -> None:
    """Inflight clients of a model all sample from what was saved last for one of them; snapshots stay."""
    training = service.create_lora_training_client(NANO, rank=4, seed=1)
    snapshot = training.save_weights_and_get_sampling_client()
    first = training.save_weights_and_get_sampling_client(kind="inflight").result(PATIENCE_S)

    def score(client: tw.SamplingClient) -> list[float]:
        found = client.compute_logprobs(PROMPT).result(PATIENCE_S)
        return [value for value in found if value is not None]

    before = score(snapshot)
    assert score(first) == before
    inputs = {"target_tokens": TOKENS[1:], "weights": [1.0] * 4}
    datum = tw.Datum(model_input=tw.ModelInput.from_ints(TOKENS[:-1]), loss_fn_inputs=inputs)
    training.forward_backward([datum], "cross_entropy")
    training.optim_step(tw.AdamParams(learning_rate=0.05)).result(PATIENCE_S)
    assert score(first) == before
    second = training.save_weights_and_get_sampling_client(kind="inflight").result(PATIENCE_S)
    after = score(second)
    assert sum(after) > sum(before)
    assert score(first) == after
    assert score(snapshot) == before
    with pytest.raises(ValueError, match="name: inflight weights cannot be saved under a name, got 'kept'"):
        training.save_weights_and_get_sampling_client("kept", kind="inflight")
