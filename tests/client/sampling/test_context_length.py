"""Samples that exceed the context of their model: the client rejects them if it knows the context length."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(120)
CONTEXT = 10
IMAGE = tw.types.ImageChunk(data=b"\x89PNG", format="png", expected_tokens=1000)


def make_prompt(length: int) -> tw.ModelInput:
    """Return a prompt of that many tokens."""
    return tw.ModelInput.from_ints(list(range(length)))


def limit_context(server: ScriptedServer, *models: dict[str, object]) -> None:
    """Let the server report these models in its capabilities."""
    supported = models or ({"model_name": "base", "max_context_length": CONTEXT},)
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({"supported_models": list(supported)})


def from_base_model(client: tw.ServiceClient) -> tw.SamplingClient:
    return client.create_sampling_client(base_model="base")


def from_trained_model(client: tw.ServiceClient) -> tw.SamplingClient:
    return client.create_lora_training_client("base").save_weights_and_get_sampling_client()


def from_saved_path(client: tw.ServiceClient) -> tw.SamplingClient:
    saved = client.create_lora_training_client("base").save_weights_for_sampler("a").result(TEST_TIMEOUT_S)
    return client.create_sampling_client(model_path=saved.path)


def from_loaded_state(client: tw.ServiceClient) -> tw.SamplingClient:
    training = client.create_training_client_from_state("tinker://other/weights/a")
    return training.save_weights_and_get_sampling_client(name="b")


def from_foreign_path(client: tw.ServiceClient) -> tw.SamplingClient:
    sampling = client.create_sampling_client(model_path="tinker://other/sampler_weights/a")
    assert sampling.get_base_model() == "base"
    return sampling


CREATE = [from_base_model, from_trained_model, from_saved_path, from_loaded_state, from_foreign_path]


@pytest.mark.parametrize("create", CREATE)
def test_sample_beyond_the_context_is_rejected_before_sending(
    server: ScriptedServer, create: Callable[[tw.ServiceClient], tw.SamplingClient]
) -> None:
    """The error names the token counts and the largest valid max_tokens; a sample that fits is sent."""
    limit_context(server)
    server.rules["samplers/sampler1"] = lambda _: ScriptedResponse({"sampler_id": "sampler1", "base_model": "base"})
    with open_client(server.url, wire_version="0.22.7") as client:
        client.get_server_capabilities()
        sampling = create(client)
        rejected = sampling.sample(make_prompt(4), 1, tw.SamplingParams(max_tokens=7))
        with pytest.raises(
            tw.BadRequestError, match=r"context of 10 tokens.*4 tokens and max_tokens=7; .*most 6"
        ) as caught:
            rejected.result(TEST_TIMEOUT_S)
        assert not server.named("asample")
        sampling.sample(make_prompt(4), 1, tw.SamplingParams(max_tokens=6)).result(TEST_TIMEOUT_S)
    error = caught.value
    assert isinstance(error, tw.ContextLengthError)
    assert (error.prompt_tokens, error.max_tokens, error.context_length, error.status_code) == (4, 7, CONTEXT, 400)
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.context_length, copied.response) == (str(error), CONTEXT, error.response)
    assert len(server.named("asample")) == len(server.named("get_server_capabilities")) == 1


CASES: dict[str, tuple[tw.ModelInput, int | None, str | None]] = {
    "fits": (make_prompt(9), 1, None),
    "fits without max_tokens": (make_prompt(10), None, None),
    "prompt alone too long": (make_prompt(11), None, r"prompt of 11 tokens and max_tokens=None; shorten the prompt"),
    "prompt fills the context": (make_prompt(10), 1, r"prompt of 10 tokens and max_tokens=1; shorten the prompt"),
    "max_tokens alone too long": (make_prompt(1), 10, "set max_tokens to at most 9"),
    "zero tokens": (make_prompt(10), 0, None),
    "several chunks": (make_prompt(6).append(tw.EncodedTextChunk(tokens=[1, 2])), 3, "prompt of 8 tokens"),
    "image": (tw.ModelInput(chunks=[IMAGE]), 1, None),
    "text and image": (make_prompt(11).append(IMAGE), 100, None),
}


@pytest.mark.parametrize(("model_input", "max_tokens", "text"), CASES.values(), ids=CASES)
def test_prompt_and_max_tokens_must_fit_the_context(
    server: ScriptedServer, model_input: tw.ModelInput, max_tokens: int | None, text: str | None
) -> None:
    """The client adds prompt tokens and max_tokens; it does not check prompts with an image."""
    limit_context(server)
    with open_client(server.url, wire_version="0.22.7") as client:
        client.create_rest_client().get_server_capabilities().result(TEST_TIMEOUT_S)
        future = from_base_model(client).sample(model_input, 1, tw.SamplingParams(max_tokens=max_tokens))
        if text is None:
            future.result(TEST_TIMEOUT_S)
        else:
            with pytest.raises(tw.ContextLengthError, match=text):
                future.result(TEST_TIMEOUT_S)
    assert len(server.named("asample")) == (text is None)


@pytest.mark.parametrize(
    "models",
    [
        [],
        [{"model_name": "other", "max_context_length": 5}],
        [{"model_name": "base"}],
        [{"model_name": "base", "max_context_length": None}],
        [{"model_name": "base", "max_context_length": 0}],
        [{"max_context_length": 5}],
        [{"model_name": "base", "max_context_length": 5}, {"model_name": "base", "max_context_length": 1000}],
    ],
    ids=["capabilities unknown", "other model", "limit missing", "null", "zero", "name missing", "longest of two"],
)
def test_unknown_context_length_rejects_nothing(server: ScriptedServer, models: list[dict[str, object]]) -> None:
    """Without a known limit the client sends the sample, and makes no request to find one."""
    if models:
        limit_context(server, *models)
    with open_client(server.url, wire_version="0.22.7") as client:
        if models:
            client.get_server_capabilities()
        from_base_model(client).sample(make_prompt(6), 1, tw.SamplingParams(max_tokens=100)).result(TEST_TIMEOUT_S)
    assert len(server.named("asample")) == 1
    assert len(server.named("get_server_capabilities")) == bool(models)


def test_compute_logprobs_checks_only_the_prompt(server: ScriptedServer) -> None:
    """compute_logprobs sends a prompt that fills the context, and rejects a longer prompt."""
    limit_context(server)
    logprobs = [None] + [-1.0] * (CONTEXT - 1)
    sequence = {"stop_reason": "length", "tokens": [5], "logprobs": [-1.0]}
    server.on_poll("Sample", lambda _: ScriptedResponse({"sequences": [sequence], "prompt_logprobs": logprobs}))
    with open_client(server.url, wire_version="0.22.7") as client:
        client.get_server_capabilities()
        sampling = from_base_model(client)
        assert sampling.compute_logprobs(make_prompt(CONTEXT)).result(TEST_TIMEOUT_S) == logprobs
        with pytest.raises(tw.ContextLengthError):
            sampling.compute_logprobs(make_prompt(CONTEXT + 1)).result(TEST_TIMEOUT_S)
    assert len(server.named("asample")) == 1


def test_copies_and_handles_keep_the_context_length(server: ScriptedServer) -> None:
    """A copy rejects the same samples as its original, without a further request."""
    limit_context(server)
    with open_client(server.url, wire_version="0.22.7") as client:
        client.get_server_capabilities()
        sampling = from_base_model(client)
        copies = [
            copy.copy(sampling),
            pickle.loads(pickle.dumps(sampling)),
            tw.SamplingClient.from_sampler_handle(sampling.get_sampler_handle()),
        ]
        for sampling_copy in copies:
            with pytest.raises(tw.ContextLengthError):
                sampling_copy.sample(make_prompt(4), 1, tw.SamplingParams(max_tokens=7)).result(TEST_TIMEOUT_S)
    assert not server.named("asample")


@pytest.mark.parametrize("version", ["0.16.1", "0.25.0", "0.38.0"])
@pytest.mark.parametrize("params", [tw.SamplingParams(), tw.SamplingParams(max_tokens=None)], ids=["omitted", "None"])
def test_unset_max_tokens_is_not_sent(server: ScriptedServer, version: str, params: tw.SamplingParams) -> None:
    """No wire sends the key without a value; of the official clients only 0.16.1 sends null, for an explicit None."""
    with open_client(server.url, wire_version=version) as client:
        from_base_model(client).sample(make_prompt(3), 1, params).result(TEST_TIMEOUT_S)
    (body,) = server.bodies("asample")
    assert "max_tokens" not in body["sampling_params"]
