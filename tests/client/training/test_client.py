"""Tests of TrainingClient: request bodies, results, and argument errors before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, datum, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/weights/a"
SAMPLER_PATH = "tinker://m1/sampler_weights/a"


@pytest.mark.parametrize(
    ("name", "field"), [("forward", "forward_input"), ("forward_backward", "forward_backward_input")]
)
def test_batch_arrives_with_values_types_and_shapes(
    server: ScriptedServer, training: tw.TrainingClient, name: str, field: str
) -> None:
    """Arrays, lists and loss settings arrive as numbers with types and shapes."""
    example = tw.Datum(
        model_input=tw.ModelInput.from_ints(np.array([5, 6, 7])),
        loss_fn_inputs={"target_tokens": np.array([6, 7, 8]), "advantages": np.array([[0.5], [1.5]], dtype=np.float32)},
    )
    getattr(training, name)([example], "ppo", {"clip_low_threshold": 0.9}).result(TEST_TIMEOUT_S)
    body = server.sole_body(name)
    assert (body["model_id"], body["seq_id"]) == ("m1", 1)
    part = body[field]
    assert (part["loss_fn"], part["loss_fn_config"]) == ("ppo", {"clip_low_threshold": 0.9})
    assert part["data"][0]["model_input"]["chunks"][0]["tokens"] == [5, 6, 7]
    assert part["data"][0]["loss_fn_inputs"] == {
        "target_tokens": {"data": [6, 7, 8], "dtype": "int64", "shape": [3]},
        "advantages": {"data": [0.5, 1.5], "dtype": "float32", "shape": [2, 1]},
    }


def test_outputs_are_tensors(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Outputs, metrics and unknown fields of a result can be read."""
    outputs = [{"logprobs": {"data": [-1.0, -2.0], "dtype": "float32", "shape": None}}]
    body = {"loss_fn_output_type": "Scalar", "loss_fn_outputs": outputs, "metrics": {"loss:sum": 3.0}, "new": 1}
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(body))
    result = training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
    assert result.loss_fn_outputs[0]["logprobs"].to_numpy().tolist() == [-1.0, -2.0]
    assert result.metrics == {"loss:sum": 3.0}


def test_optim_step_sends_all_settings(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """All AdamW settings are sent, omitted ones with their defaults, by position and by name."""
    training.optim_step(tw.AdamParams(learning_rate=0.5)).result(TEST_TIMEOUT_S)
    assert server.sole_body("optim_step")["adam_params"] == {
        "learning_rate": 0.5,
        "beta1": 0.9,
        "beta2": 0.95,
        "eps": 1e-12,
        **{
            key: 0.0
            for key in ("weight_decay", "grad_clip_norm")
            if key in server.bodies("optim_step")[0]["adam_params"]
        },
    }
    training.optim_step(adam_params=ADAM).result(TEST_TIMEOUT_S)


def test_get_info_describes_the_created_model(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """get_info returns the server's description; the id is that of the creation."""
    assert training.model_id == "m1"
    assert training.get_info().model_id == "m1"
    assert asyncio.run(training.get_info_async()).model_data.model_name == "base"
    assert server.bodies("get_info")[0]["model_id"] == "m1"


Attempt = Callable[[tw.ServiceClient, tw.TrainingClient], Any]
WRONG_CALLS: dict[str, tuple[Attempt, type[Exception], str]] = {
    "no data": (lambda _, t: t.forward_backward([], "cross_entropy"), ValueError, "at least 1 datum, got 0"),
    "no data from a generator": (
        lambda _, t: t.forward(iter(()), "cross_entropy"),
        ValueError,
        "at least 1 datum, got 0",
    ),  # type: ignore[arg-type]
    "one datum": (lambda _, t: t.forward(datum(), "cross_entropy"), TypeError, "a list of datums"),  # type: ignore[arg-type]
    "no datum": (lambda _, t: t.forward([datum(), {}], "cross_entropy"), TypeError, r"data\[1\].*dict"),  # type: ignore[list-item]
    "no loss": (lambda _, t: t.forward([datum()], "entropy"), ValueError, "cross_entropy"),  # type: ignore[arg-type]
    "no Adam": (lambda _, t: t.optim_step({"learning_rate": 1}), TypeError, "AdamParams"),  # type: ignore[arg-type]
    "no path": (lambda _, t: t.load_state(""), ValueError, "path: '' is empty"),
    "no text": (lambda _, t: t.load_state(None), TypeError, "path: expected a str"),  # type: ignore[arg-type]
    "sampler weights": (lambda _, t: t.load_state(SAMPLER_PATH), ValueError, "save_state"),
    "sampler weights, optimizer": (lambda _, t: t.load_state_with_optimizer(SAMPLER_PATH), ValueError, "save_state"),
    "from sampler weights": (
        lambda c, _: c.create_training_client_from_state(SAMPLER_PATH),
        ValueError,
        "sampler weights, which cannot load training state; give a path that save_state returned",
    ),
    "from training weights": (
        lambda c, _: c.create_sampling_client(PATH),
        ValueError,
        "training weights, which cannot be sampled from; give a path that save_weights_for_sampler returned",
    ),
    "rank 0": (lambda c, _: c.create_lora_training_client("base", rank=0), ValueError, "at least 1, got 0"),
    "rank of text": (lambda c, _: c.create_lora_training_client("base", rank="8"), TypeError, "rank"),  # type: ignore[arg-type]
    "no model": (lambda c, _: c.create_lora_training_client(""), ValueError, "base_model"),
    "nothing to train": (
        lambda c, _: c.create_lora_training_client("b", train_mlp=False, train_attn=False, train_unembed=False),
        ValueError,
        "at least one of train_mlp, train_attn and train_unembed must be True",
    ),
    "nothing to sample from": (lambda c, _: c.create_sampling_client(), ValueError, "exactly one"),
    "two to sample from": (lambda c, _: c.create_sampling_client(SAMPLER_PATH, "base"), ValueError, "exactly one"),
}


@pytest.mark.parametrize(("attempt", "kind", "text"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_arguments_raise_in_the_call(
    server: ScriptedServer, client: tw.ServiceClient, attempt: Attempt, kind: type[Exception], text: str
) -> None:
    """A wrong argument raises in the call with the expected value; nothing is sent or counted."""
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    number = len(server.requests)
    with pytest.raises(kind, match=text):
        attempt(client, training)
    training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert len(server.requests) == number + 2
    assert server.bodies("optim_step")[0]["seq_id"] == 1


def test_data_may_come_from_a_generator(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Any iterable of datums is a batch."""
    training.forward((datum(i) for i in range(3)), "cross_entropy").result(TEST_TIMEOUT_S)  # type: ignore[arg-type]
    assert len(server.bodies("forward")[0]["forward_input"]["data"]) == 3


def test_every_method_has_async_variant(training: tw.TrainingClient) -> None:
    """The _async methods return the same futures and clients."""

    async def run() -> None:
        futures: list[Any] = [
            await training.forward_async([datum()], "cross_entropy"),
            await training.forward_backward_async([datum()], "cross_entropy"),
            await training.optim_step_async(ADAM),
            await training.save_state_async("a"),
            await training.load_state_async(PATH),
            await training.load_state_with_optimizer_async(PATH),
            await training.save_weights_for_sampler_async("a"),
        ]
        for future in futures:
            assert isinstance(future, tw.APIFuture)
            await future

    asyncio.run(run())


def test_unload_model_follows_earlier_operations(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The request follows all earlier operations; wire versions without it raise."""
    server.on_poll("UnloadModel", lambda _: ScriptedResponse({"model_id": "m1"}))
    training.optim_step(ADAM)
    assert training.unload_model().result(TEST_TIMEOUT_S).model_id == "m1"
    assert [request.name for request in server.requests if request.name in ("optim_step", "unload_model")] == [
        "optim_step",
        "unload_model",
    ]
    assert server.sole_body("unload_model") == {"model_id": "m1"}
    with open_client(server.url, wire_version="0.38.0") as new, pytest.raises(tw.DialectError, match="unload_model"):
        new.create_lora_training_client("base").unload_model().result(TEST_TIMEOUT_S)
