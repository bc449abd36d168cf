"""SamplingClient: bodies on the wire, argument errors, prompt logprobs, and where its weights come from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT
from support.scripted import PATIENCE_S, Gate, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/sampler_weights/a"
IMAGE = tw.types.ImageAssetPointerChunk(location="tinker://x", format="png")


@pytest.fixture
def sampling(client: tw.ServiceClient) -> tw.SamplingClient:
    return client.create_sampling_client(base_model="base")


def sent(body: dict[str, Any]) -> dict[str, Any]:
    """A body without nulls and tags."""
    return {key: value for key, value in body.items() if value is not None and key != "type"}


@pytest.mark.parametrize("source", [{"base_model": "base"}, {"model_path": PATH}, {"model_path": "tinker://m1/odd"}])
def test_creation(server: ScriptedServer, client: tw.ServiceClient, source: dict[str, str]) -> None:
    """A sampler is asked for by base model or by path, whatever form the server gives its paths."""
    first, second = client.create_sampling_client(**source), client.create_sampling_client(**source)
    assert first.result(PATIENCE_S).sampling_session_id == "sampler1"
    second.result(PATIENCE_S)
    assert [sent(body) for body in server.bodies("create_sampling_session")] == [
        {"session_id": "s1", "sampling_session_seq_id": number, **source} for number in range(2)
    ]


def test_sample(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """Every argument of sample arrives in its place."""
    params = tw.SamplingParams(max_tokens=9, seed=3, stop=["\n"], temperature=0.5, top_k=7, top_p=0.9)
    response = sampling.sample(PROMPT, 2, params, include_prompt_logprobs=True, topk_prompt_logprobs=5).result(
        PATIENCE_S
    )
    assert response.sequences[0].tokens == [1, 2]
    body = sent(server.bodies("asample")[0])
    assert body.pop("sampling_params") == {
        "max_tokens": 9,
        "seed": 3,
        "stop": ["\n"],
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 0.9,
    }
    assert body.pop("prompt")["chunks"][0]["tokens"] == [1, 2]
    assert body == {
        "num_samples": 2,
        "sampling_session_id": "sampler1",
        "seq_id": 0,
        "prompt_logprobs": True,
        "topk_prompt_logprobs": 5,
    }


def test_samples_count_from_zero(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """Each sample of a client has a number of its own, from 0."""
    for future in [sampling.sample(PROMPT, 1, PARAMS) for _ in range(100)]:
        future.result(PATIENCE_S)
    assert sorted(body["seq_id"] for body in server.bodies("asample")) == list(range(100))


def test_one_failed_sample_is_one_failed_sample(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """A sample that fails says so by itself, with category and id; the others come."""
    failed = ScriptedResponse({"error": "Unknown error", "category": "server"})
    server.on_poll("Sample", in_order(server.healthy_response, failed, server.healthy_response))
    futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(10)]
    errors = [future.exception(PATIENCE_S) for future in futures]
    (error,) = [error for error in errors if error is not None]
    assert isinstance(error, tw.RequestFailedError)
    assert error.request_id
    assert error.category is tw.RequestErrorCategory.Server


def test_a_failed_creation_reaches_every_sample(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """When there is nothing to sample from, client and samples fail with the server's words, and nothing is sent."""
    server.rules["create_sampling_session"] = lambda _: ScriptedResponse({"detail": "no such model"}, status=404)
    sampling = client.create_sampling_client(base_model="typo")
    for waiting in (sampling, sampling.sample(PROMPT, 1, PARAMS), sampling.compute_logprobs(PROMPT)):
        with pytest.raises(tw.NotFoundError, match="no such model"):
            waiting.result(PATIENCE_S)
    assert not server.named("asample")


def test_samples_wait_for_the_creation_alone(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A sample that is cancelled while the sampler is being made leaves the sampler to the others."""
    hold = Gate()
    server.rules["create_sampling_session"] = lambda asked: ScriptedResponse(
        server.healthy_response(asked).body, hold=hold
    )
    sampling = client.create_sampling_client(base_model="base")
    first, second = sampling.sample(PROMPT, 1, PARAMS), sampling.sample(PROMPT, 1, PARAMS)
    server.wait_for_requests("create_sampling_session")
    first.cancel()
    hold.release()
    second.result(PATIENCE_S)
    assert len(server.named("asample")) == 1


def logprobs(*values: float | None) -> ScriptedResponse:
    return ScriptedResponse({"sequences": [{"stop_reason": "length", "tokens": [5]}], "prompt_logprobs": list(values)})


@pytest.mark.parametrize("values", [(None, -1.0, -2.0), (-1.0, -2.0)], ids=["all", "without the first"])
def test_compute_logprobs(
    server: ScriptedServer, sampling: tw.SamplingClient, values: tuple[float | None, ...]
) -> None:
    """One value per token, None for the first, also from servers that leave that one out."""
    server.on_poll("Sample", lambda _: logprobs(*values))
    prompt = tw.ModelInput.from_ints([1, 2, 3])
    assert sampling.compute_logprobs(prompt).result(PATIENCE_S) == [None, -1.0, -2.0]
    assert asyncio.run(sampling.compute_logprobs_async(prompt)) == [None, -1.0, -2.0]
    body = server.bodies("asample")[0]
    assert (body["num_samples"], body["prompt_logprobs"], body["sampling_params"]["max_tokens"]) == (1, True, 1)


@pytest.mark.parametrize(
    "answer", [logprobs(), logprobs(-1.0, -1.0, -1.0, -1.0), ScriptedResponse({"sequences": []})], ids=str
)
def test_logprobs_that_do_not_fit(
    server: ScriptedServer, sampling: tw.SamplingClient, answer: ScriptedResponse
) -> None:
    """Another number of values, or none, is an error that says how many came for how many tokens."""
    server.on_poll("Sample", lambda _: answer)
    with pytest.raises(tw.APIResponseValidationError, match=r"per prompt token \(3\), got (none|0|4)"):
        sampling.compute_logprobs(tw.ModelInput.from_ints([1, 2, 3])).result(PATIENCE_S)


def test_logprobs_of_a_prompt_of_unknown_length(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """With an image whose length only the server knows, its values are given as they come."""
    server.on_poll("Sample", lambda _: logprobs(None, -1.0, -2.0, -3.0))
    prompt = tw.ModelInput.from_ints([1]).append(IMAGE)
    assert sampling.compute_logprobs(prompt).result(PATIENCE_S) == [None, -1.0, -2.0, -3.0]


def test_get_base_model(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """The base model is what the server says of the sampler."""
    server.rules["samplers/sampler1"] = lambda _: ScriptedResponse({"sampler_id": "sampler1", "base_model": "found"})
    assert sampling.get_base_model() == "found"
    assert asyncio.run(sampling.get_base_model_async()) == "found"


def test_sample_async(sampling: tw.SamplingClient) -> None:
    """sample_async gives the response itself, many at once."""

    async def run() -> list[tw.SampleResponse]:
        return await asyncio.gather(*(sampling.sample_async(PROMPT, 1, PARAMS) for _ in range(20)))

    assert len(asyncio.run(run())) == 20


WRONG: dict[str, tuple[Callable[[tw.SamplingClient], Any], type[Exception], str]] = {
    "no samples": (lambda s: s.sample(PROMPT, 0, PARAMS), ValueError, "num_samples must be at least 1, got 0"),
    "a part of a sample": (lambda s: s.sample(PROMPT, 1.5, PARAMS), TypeError, "num_samples"),  # type: ignore[arg-type]
    "less than no tokens": (
        lambda s: s.sample(PROMPT, 1, PARAMS, False, -1),
        ValueError,
        "topk_prompt_logprobs must be at least 0, got -1",
    ),
    "a list": (lambda s: s.sample([1, 2], 1, PARAMS), TypeError, "prompt: expected a ModelInput, got list"),  # type: ignore[arg-type]
    "a dict": (lambda s: s.sample(PROMPT, 1, {"max_tokens": 1}), TypeError, "sampling_params: .*dict"),  # type: ignore[arg-type]
    "nothing": (lambda s: s.sample(tw.ModelInput.empty(), 1, PARAMS), ValueError, "prompt"),
    "a word": (lambda s: s.sample(PROMPT, 1, PARAMS, "yes"), TypeError, "prompt_logprobs"),  # type: ignore[arg-type]
    "logprobs of a list": (lambda s: s.compute_logprobs([1]), TypeError, "prompt: expected a ModelInput, got list"),  # type: ignore[arg-type]
    "logprobs of nothing": (lambda s: s.compute_logprobs(tw.ModelInput.empty()), ValueError, "prompt"),
}


@pytest.mark.parametrize(("attempt", "kind", "text"), WRONG.values(), ids=WRONG)
def test_wrong_arguments(
    server: ScriptedServer,
    sampling: tw.SamplingClient,
    attempt: Callable[[tw.SamplingClient], Any],
    kind: type[Exception],
    text: str,
) -> None:
    """A wrong argument raises where it is given, says what would be right, and neither sends nor counts anything."""
    sampling.result(PATIENCE_S)
    with pytest.raises(kind, match=text):
        attempt(sampling)
    sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert [body["seq_id"] for body in server.bodies("asample")] == [0]
