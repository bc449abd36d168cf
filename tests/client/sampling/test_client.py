"""SamplingClient: creation, request bodies, argument errors and prompt logprobs."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/sampler_weights/a"
IMAGE = tw.types.ImageAssetPointerChunk(location="tinker://x", format="png")


@pytest.fixture
def sampling(client: tw.ServiceClient) -> tw.SamplingClient:
    """Create a sampling client of the base model."""
    return client.create_sampling_client(base_model="base")


def set_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body without nulls and the type tag."""
    return {key: value for key, value in body.items() if value is not None and key != "type"}


@pytest.mark.parametrize("source", [{"base_model": "base"}, {"model_path": PATH}, {"model_path": "tinker://m1/name"}])
def test_sampling_session_is_created_from_model_or_path(
    server: ScriptedServer, client: tw.ServiceClient, source: dict[str, Any]
) -> None:
    """The request of a sampling session names the base model or the path, which may have any form."""
    first, second = client.create_sampling_client(**source), client.create_sampling_client(**source)
    assert first.result(TEST_TIMEOUT_S).sampling_session_id == "sampler1"
    second.result(TEST_TIMEOUT_S)
    assert [set_fields(body) for body in server.bodies("create_sampling_session")] == [
        {"session_id": "s1", "sampling_session_seq_id": seq_id, **source} for seq_id in range(2)
    ]


def test_sample_sends_every_argument(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """The request of a sample has every argument in its field."""
    params = tw.SamplingParams(max_tokens=9, seed=3, stop=["\n"], temperature=0.5, top_k=7, top_p=0.9)
    response = sampling.sample(PROMPT, 2, params, include_prompt_logprobs=True, topk_prompt_logprobs=5).result(
        TEST_TIMEOUT_S
    )
    assert response.sequences[0].tokens == [1, 2]
    body = set_fields(server.bodies("asample")[0])
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


def test_samples_are_numbered_from_zero(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """Each sample of a client has a unique seq_id, counted from 0."""
    for future in [sampling.sample(PROMPT, 1, PARAMS) for _ in range(100)]:
        future.result(TEST_TIMEOUT_S)
    assert sorted(body["seq_id"] for body in server.bodies("asample")) == list(range(100))


def test_failed_sample_does_not_fail_the_others(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """The error of a failed sample has its category and id, and the other samples succeed."""
    failed = ScriptedResponse({"error": "Unknown error", "category": "server"})
    server.on_poll("Sample", in_order(server.healthy_response, failed, server.healthy_response))
    futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(10)]
    errors = [future.exception(TEST_TIMEOUT_S) for future in futures]
    (error,) = [error for error in errors if error is not None]
    assert isinstance(error, tw.RequestFailedError)
    assert error.request_id
    assert error.category is tw.RequestErrorCategory.Server


def test_failed_creation_fails_every_sample(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """If the sampling session cannot be created, client and samples raise its error, and no sample is sent."""
    server.rules["create_sampling_session"] = lambda _: ScriptedResponse({"detail": "no such model"}, status=404)
    sampling = client.create_sampling_client(base_model="typo")
    for pending in (sampling, sampling.sample(PROMPT, 1, PARAMS), sampling.compute_logprobs(PROMPT)):
        with pytest.raises(tw.NotFoundError, match="no such model"):
            pending.result(TEST_TIMEOUT_S)
    assert not server.named("asample")


def test_cancelled_sample_does_not_cancel_the_creation(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A sample cancelled during the creation of the session does not cancel the creation."""
    gate = Gate()
    server.rules["create_sampling_session"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=gate
    )
    sampling = client.create_sampling_client(base_model="base")
    first, second = sampling.sample(PROMPT, 1, PARAMS), sampling.sample(PROMPT, 1, PARAMS)
    server.wait_for_requests("create_sampling_session")
    first.cancel()
    gate.release()
    second.result(TEST_TIMEOUT_S)
    assert len(server.named("asample")) == 1


def make_result(*values: float | None) -> ScriptedResponse:
    """Return a result with these prompt logprobs."""
    return ScriptedResponse({"sequences": [{"stop_reason": "length", "tokens": [5]}], "prompt_logprobs": list(values)})


@pytest.mark.parametrize("values", [(None, -1.0, -2.0), (-1.0, -2.0)], ids=["all", "without the first"])
def test_compute_logprobs_returns_a_value_per_token(
    server: ScriptedServer, sampling: tw.SamplingClient, values: tuple[float | None, ...]
) -> None:
    """compute_logprobs returns a value per token, None for the first, also if the server omits the first."""
    server.on_poll("Sample", lambda _: make_result(*values))
    prompt = tw.ModelInput.from_ints([1, 2, 3])
    assert sampling.compute_logprobs(prompt).result(TEST_TIMEOUT_S) == [None, -1.0, -2.0]
    assert asyncio.run(sampling.compute_logprobs_async(prompt)) == [None, -1.0, -2.0]
    body = server.bodies("asample")[0]
    assert (body["num_samples"], body["prompt_logprobs"], body["sampling_params"]["max_tokens"]) == (1, True, 1)


@pytest.mark.parametrize(
    "response", [make_result(), make_result(-1.0, -1.0, -1.0, -1.0), ScriptedResponse({"sequences": []})], ids=str
)
def test_wrong_number_of_prompt_logprobs_is_an_error(
    server: ScriptedServer, sampling: tw.SamplingClient, response: ScriptedResponse
) -> None:
    """A wrong number of values, or none, raises an error with the numbers of values and of tokens."""
    server.on_poll("Sample", lambda _: response)
    with pytest.raises(tw.APIResponseValidationError, match=r"per prompt token \(3\), got (none|0|4)"):
        sampling.compute_logprobs(tw.ModelInput.from_ints([1, 2, 3])).result(TEST_TIMEOUT_S)


def test_logprobs_of_a_prompt_with_an_image_are_unchanged(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """With an image whose length only the server knows, compute_logprobs returns the values unchanged."""
    server.on_poll("Sample", lambda _: make_result(None, -1.0, -2.0, -3.0))
    prompt = tw.ModelInput.from_ints([1]).append(IMAGE)
    assert sampling.compute_logprobs(prompt).result(TEST_TIMEOUT_S) == [None, -1.0, -2.0, -3.0]


def test_base_model_is_read_from_the_server(server: ScriptedServer, sampling: tw.SamplingClient) -> None:
    """get_base_model returns the base model that the server reports for the sampler."""
    server.rules["samplers/sampler1"] = lambda _: ScriptedResponse({"sampler_id": "sampler1", "base_model": "qwen"})
    assert sampling.get_base_model() == "qwen"
    assert asyncio.run(sampling.get_base_model_async()) == "qwen"


def test_sample_async_returns_the_response(sampling: tw.SamplingClient) -> None:
    """sample_async returns the response, also for many concurrent samples."""

    async def run() -> list[tw.SampleResponse]:
        return await asyncio.gather(*(sampling.sample_async(PROMPT, 1, PARAMS) for _ in range(20)))

    assert len(asyncio.run(run())) == 20


SampleCall = Callable[[tw.SamplingClient], object]
INVALID_CALLS: dict[str, tuple[SampleCall, type[Exception], str]] = {
    "zero num_samples": (
        lambda sampling: sampling.sample(PROMPT, 0, PARAMS),
        ValueError,
        "num_samples must be at least 1, got 0",
    ),
    "fractional num_samples": (lambda sampling: sampling.sample(PROMPT, 1.5, PARAMS), TypeError, "num_samples"),  # type: ignore[arg-type]
    "negative topk": (
        lambda sampling: sampling.sample(PROMPT, 1, PARAMS, False, -1),
        ValueError,
        "topk_prompt_logprobs must be at least 0, got -1",
    ),
    "list as prompt": (
        lambda sampling: sampling.sample([1, 2], 1, PARAMS),  # type: ignore[arg-type]
        TypeError,
        "prompt: expected a ModelInput, got list",
    ),
    "dict as params": (
        lambda sampling: sampling.sample(PROMPT, 1, {"max_tokens": 1}),  # type: ignore[arg-type]
        TypeError,
        "sampling_params: .*dict",
    ),
    "empty prompt": (lambda sampling: sampling.sample(tw.ModelInput.empty(), 1, PARAMS), ValueError, "prompt"),
    "text as flag": (lambda sampling: sampling.sample(PROMPT, 1, PARAMS, "yes"), TypeError, "prompt_logprobs"),  # type: ignore[arg-type]
    "logprobs of list": (
        lambda sampling: sampling.compute_logprobs([1]),  # type: ignore[arg-type]
        TypeError,
        "prompt: expected a ModelInput, got list",
    ),
    "logprobs of empty prompt": (
        lambda sampling: sampling.compute_logprobs(tw.ModelInput.empty()),
        ValueError,
        "prompt",
    ),
}


@pytest.mark.parametrize(("call", "error", "text"), INVALID_CALLS.values(), ids=INVALID_CALLS)
def test_wrong_arguments_are_rejected_before_sending(
    server: ScriptedServer,
    sampling: tw.SamplingClient,
    call: SampleCall,
    error: type[Exception],
    text: str,
) -> None:
    """A wrong argument raises an error at the call, before a request, and uses no seq_id."""
    sampling.result(TEST_TIMEOUT_S)
    with pytest.raises(error, match=text):
        call(sampling)
    sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert [body["seq_id"] for body in server.bodies("asample")] == [0]


def test_error_of_the_creation_is_logged_if_no_sample_retrieves_it(
    server: ScriptedServer, client: tw.ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The only sample has timed out before; samples that wait for the client do not hide the error."""
    gate = Gate()
    server.rules["create_sampling_session"] = lambda _: ScriptedResponse(status=403, gate=gate)
    sampling = client.create_sampling_client(base_model="base")
    with pytest.raises(tw.RequestTimeoutError):
        sampling.sample(PROMPT, 1, PARAMS, timeout=0.3).result(TEST_TIMEOUT_S)
    del sampling
    gate.release()

    def is_logged() -> bool:
        gc.collect()
        return "CreateSamplingSession failed, and its error was never retrieved" in caplog.text

    wait_until(is_logged, "the error is logged")
