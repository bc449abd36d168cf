"""Tests of TrainingClient: request bodies, argument errors before anything is sent, and weights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/weights/a"
SAMPLER_PATH = "tinker://m1/sampler_weights/a"


def sent(server: ScriptedServer, name: str) -> dict[str, Any]:
    """Return the only body sent to a path, without nulls and the type tag."""
    (body,) = server.bodies(name)
    return {key: value for key, value in body.items() if value is not None and key != "type"}


def test_creation_sends_every_argument(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Every argument arrives in its field; omitted ones are left to the server."""
    client.create_lora_training_client(
        "base", rank=4, seed=7, train_mlp=False, train_unembed=False, user_metadata={"a": "b"}
    ).result(PATIENCE_S)
    assert sent(server, "create_model") == {
        "session_id": "s1",
        "model_seq_id": 0,
        "base_model": "base",
        "user_metadata": {"a": "b"},
        "lora_config": {"rank": 4, "seed": 7, "train_unembed": False, "train_mlp": False, "train_attn": True},
    }


@pytest.mark.parametrize(
    ("name", "field"), [("forward", "forward_input"), ("forward_backward", "forward_backward_input")]
)
def test_batches_arrive_as_numbers_types_and_shapes(
    server: ScriptedServer, training: tw.TrainingClient, name: str, field: str
) -> None:
    """Arrays, lists and loss settings arrive as numbers with types and shapes."""
    data = tw.Datum(
        model_input=tw.ModelInput.from_ints(np.array([5, 6, 7])),
        loss_fn_inputs={"target_tokens": np.array([6, 7, 8]), "advantages": np.array([[0.5], [1.5]], dtype=np.float32)},
    )
    getattr(training, name)([data], "ppo", {"clip_low_threshold": 0.9}).result(PATIENCE_S)
    body = sent(server, name)
    assert (body["model_id"], body["seq_id"]) == ("m1", 1)
    part = body[field]
    assert (part["loss_fn"], part["loss_fn_config"]) == ("ppo", {"clip_low_threshold": 0.9})
    assert part["data"][0]["model_input"]["chunks"][0]["tokens"] == [5, 6, 7]
    assert part["data"][0]["loss_fn_inputs"] == {
        "target_tokens": {"data": [6, 7, 8], "dtype": "int64", "shape": [3]},
        "advantages": {"data": [0.5, 1.5], "dtype": "float32", "shape": [2, 1]},
    }


def test_outputs_come_as_tensors(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Outputs, metrics and unknown fields of a result can be read."""
    outputs = [{"logprobs": {"data": [-1.0, -2.0], "dtype": "float32", "shape": None}}]
    body = {"loss_fn_output_type": "Scalar", "loss_fn_outputs": outputs, "metrics": {"loss:sum": 3.0}, "new": 1}
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(body))
    result = training.forward_backward([datum()], "cross_entropy").result(PATIENCE_S)
    assert result.loss_fn_outputs[0]["logprobs"].to_numpy().tolist() == [-1.0, -2.0]
    assert result.metrics == {"loss:sum": 3.0}


def test_optim_step_sends_all_settings(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """All AdamW settings are sent, omitted ones with their defaults, by position and by name."""
    training.optim_step(tw.AdamParams(learning_rate=0.5)).result(PATIENCE_S)
    assert sent(server, "optim_step")["adam_params"] == {
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
    training.optim_step(adam_params=ADAM).result(PATIENCE_S)


def test_save_and_load(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Names, lifetimes and the optimizer flag arrive; saving returns the path."""
    assert training.save_state("a", ttl_seconds=60).result(PATIENCE_S).path == PATH
    assert training.save_weights_for_sampler("b", 90).result(PATIENCE_S).path == SAMPLER_PATH
    training.load_state(PATH).result(PATIENCE_S)
    assert sent(server, "save_weights") == {"model_id": "m1", "path": "a", "seq_id": 1, "ttl_seconds": 60}
    assert sent(server, "save_weights_for_sampler") == {"model_id": "m1", "path": "b", "seq_id": 2, "ttl_seconds": 90}
    assert sent(server, "load_weights") == {"model_id": "m1", "path": PATH, "optimizer": False, "seq_id": 3}
    training.load_state_with_optimizer(PATH).result(PATIENCE_S)
    assert server.bodies("load_weights")[1]["optimizer"] is True


def test_loading_on_an_old_wire(server: ScriptedServer) -> None:
    """A wire version without the optimizer flag loads weights without it, and raises for the optimizer state."""
    with open_client(server.url, wire_version="0.4.1") as client:
        training = client.create_lora_training_client("base")
        training.load_state(PATH).result(PATIENCE_S)
        with pytest.raises(tw.DialectError, match=r"optimizer.*0\.4\.1"):
            training.load_state_with_optimizer(PATH).result(PATIENCE_S)
    assert "optimizer" not in server.bodies("load_weights")[0]


def test_sampling_from_unnamed_weights_uses_the_session_of_the_response(
    server: ScriptedServer, training: tw.TrainingClient
) -> None:
    """No further request follows, and the save keeps its turn."""
    training.optim_step(ADAM)
    sampling = training.save_weights_and_get_sampling_client()
    after = training.optim_step(ADAM)
    assert sampling.result(PATIENCE_S).sampling_session_id == "sampler2"
    after.result(PATIENCE_S)
    body = sent(server, "save_weights_for_sampler")
    assert body == {"model_id": "m1", "seq_id": 2, "sampling_session_seq_id": 0}
    assert not server.named("create_sampling_session")
    sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert server.bodies("asample")[0]["sampling_session_id"] == "sampler2"


def test_a_sampling_client_of_named_weights(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The weights are saved under the name, and the returned path is sampled from."""
    server.on_poll("SaveWeightsForSampler", lambda _: ScriptedResponse({"path": "tinker://m1/named"}))
    training.save_weights_and_get_sampling_client("named").result(PATIENCE_S)
    assert sent(server, "save_weights_for_sampler") == {"model_id": "m1", "path": "named", "seq_id": 1}
    assert sent(server, "create_sampling_session")["model_path"] == "tinker://m1/named"


def test_a_name_given_twice_samples_from_the_new_weights(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The second save has no name; a warning is logged, and later operations keep their order."""
    server.on_poll("SaveWeightsForSampler", lambda _: ScriptedResponse({"path": "tinker://m1/sampler_weights/named"}))
    first = training.save_weights_and_get_sampling_client("named")
    second = training.save_weights_and_get_sampling_client("named")
    step = training.optim_step(tw.AdamParams())
    for waiting in (first, second, step):
        waiting.result(PATIENCE_S)
    bodies = server.bodies("save_weights_for_sampler")
    assert [(body.get("path"), body["seq_id"]) for body in bodies] == [("named", 1), (None, 2)]
    assert bodies[1]["sampling_session_seq_id"] is not None
    assert server.bodies("optim_step")[0]["seq_id"] == 3
    assert "'named' was saved before and is not overwritten" in caplog.text


def test_a_name_given_twice_to_a_server() -> None:
    """Each client samples from the weights of its call, and the first save keeps the name."""
    with tw.ServiceClient(base_url="local") as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        samplers = [training.save_weights_and_get_sampling_client(name="same").result(PATIENCE_S) for _ in range(3)]
        for sampling in samplers:
            assert sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S).sequences
        listed = client.create_rest_client().list_checkpoints(training.model_id).result(PATIENCE_S).checkpoints
        assert [checkpoint.checkpoint_id for checkpoint in listed] == ["sampler_weights/same"]
        again = training.save_weights_for_sampler("same")
        with pytest.raises(tw.TinkerError, match="already exists"):
            again.result(PATIENCE_S)


def test_response_without_session_and_path_raises(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Without session and path in the response, the client and its samples raise an error."""
    server.on_poll("SaveWeightsForSampler", lambda _: ScriptedResponse({"type": "save_weights_for_sampler"}))
    sampling = training.save_weights_and_get_sampling_client()
    for waiting in (sampling, sampling.sample(PROMPT, 1, PARAMS)):
        with pytest.raises(tw.TinkerError, match="neither a sampling session nor a path"):
            waiting.result(PATIENCE_S)


def test_a_sampling_client_of_a_path(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """create_sampling_client of a training client samples from saved weights."""
    training.create_sampling_client(SAMPLER_PATH).result(PATIENCE_S)
    assert asyncio.run(training.create_sampling_client_async(SAMPLER_PATH)).sampling_session_id == "sampler1"
    assert [body["model_path"] for body in server.bodies("create_sampling_session")] == [SAMPLER_PATH] * 2


def test_get_info_and_model_id(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """get_info returns the server's description; the id is that of the creation."""
    assert training.model_id == "m1"
    assert training.get_info().model_id == "m1"
    assert asyncio.run(training.get_info_async()).model_data.model_name == "base"
    assert server.bodies("get_info")[0]["model_id"] == "m1"


@pytest.mark.parametrize("optimizer", [False, True])
def test_a_client_from_saved_state(server: ScriptedServer, client: tw.ServiceClient, optimizer: bool) -> None:
    """The model is created like the saved one and loaded under seq_id 1, with or without optimizer."""
    info = {"base_model": "found", "is_lora": True, "lora_rank": 3, "train_mlp": False, "train_unembed": None}
    server.rules["weights_info"] = lambda _: ScriptedResponse(info)
    make = (
        client.create_training_client_from_state_with_optimizer
        if optimizer
        else client.create_training_client_from_state
    )
    training = make(PATH, user_metadata={"a": "b"})
    training.optim_step(ADAM).result(PATIENCE_S)
    assert server.bodies("weights_info")[0] == {"tinker_path": PATH}
    model = sent(server, "create_model")
    assert (model["base_model"], model["user_metadata"]) == ("found", {"a": "b"})
    assert model["lora_config"] == {"rank": 3, "train_unembed": True, "train_mlp": False, "train_attn": True}
    assert sent(server, "load_weights") == {"model_id": "m1", "path": PATH, "optimizer": optimizer, "seq_id": 1}
    assert sent(server, "optim_step")["seq_id"] == 2


def test_a_client_from_saved_state_async(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The async methods wait for the load; a base model from the user has precedence over the server's."""

    async def run() -> None:
        await client.create_training_client_from_state_async(PATH, "mine")
        await client.create_training_client_from_state_with_optimizer_async(PATH)

    asyncio.run(run())
    assert [body["optimizer"] for body in server.bodies("load_weights")] == [False, True]
    assert [body["base_model"] for body in server.bodies("create_model")] == ["mine", "base"]


RUN = {
    "training_run_id": "m1",
    "base_model": "of-run",
    "model_owner": "me",
    "is_lora": True,
    "lora_rank": 5,
    "last_request_time": "2026-01-01T00:00:00Z",
    "user_metadata": {"kept": "1", "a": "0"},
}


@pytest.mark.parametrize(
    "missing", [ScriptedResponse({"detail": "no"}, status=404), ScriptedResponse(status=405)], ids=str
)
def test_servers_without_weights_info(
    server: ScriptedServer, client: tw.ServiceClient, missing: ScriptedResponse
) -> None:
    """Without weights_info, the training run has rank and metadata; the user's metadata is merged over it."""
    server.rules["weights_info"] = lambda _: missing
    server.rules["training_runs/m1"] = lambda _: ScriptedResponse(RUN)
    client.create_training_client_from_state(PATH, user_metadata={"a": "b"}).result(PATIENCE_S)
    model = sent(server, "create_model")
    assert (model["base_model"], model["lora_config"]["rank"]) == ("of-run", 5)
    assert model["user_metadata"] == {"kept": "1", "a": "b"}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"weights_info": ScriptedResponse({"detail": "not yours"}, status=403)}, "not yours"),
        ({"weights_info": ScriptedResponse({"base_model": "b", "is_lora": True})}, "LoRA rank"),
        (
            {
                "weights_info": ScriptedResponse(status=404),
                "training_runs/m1": ScriptedResponse({"detail": "no run"}, status=404),
            },
            "no run",
        ),
        (
            {
                "weights_info": ScriptedResponse(status=404),
                "training_runs/m1": ScriptedResponse({**RUN, "base_model": None}),
            },
            "report the base model .* pass base_model",
        ),
    ],
)
def test_unknown_weights_raise_the_reason(
    server: ScriptedServer, client: tw.ServiceClient, answers: dict[str, ScriptedResponse], why: str
) -> None:
    """If the server has no information about the weights, client and operations raise; no model is created."""
    for name, response in answers.items():
        server.rules[name] = in_order(response)
    training = client.create_training_client_from_state(PATH)
    for waiting in (training, training.optim_step(ADAM)):
        with pytest.raises(tw.TinkerError, match=why):
            waiting.result(PATIENCE_S)
    assert not server.named("create_model")


def test_a_path_of_no_known_form(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A path in a server's own form works with weights_info; otherwise, operations raise the server's error."""
    client.create_training_client_from_state("tinker://bad").result(PATIENCE_S)
    server.rules["weights_info"] = lambda _: ScriptedResponse(status=404)
    training = client.create_training_client_from_state("tinker://bad")
    with pytest.raises(ValueError, match="tinker://bad' must name a run and a checkpoint"):
        training.result(PATIENCE_S)
    with pytest.raises(tw.TinkerError, match=r"not created: .*tinker://bad"):
        training.optim_step(ADAM).result(PATIENCE_S)


Attempt = Callable[[tw.ServiceClient, tw.TrainingClient], Any]
WRONG: dict[str, tuple[Attempt, type[Exception], str]] = {
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


@pytest.mark.parametrize(("attempt", "kind", "text"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_raise_in_the_call(
    server: ScriptedServer, client: tw.ServiceClient, attempt: Attempt, kind: type[Exception], text: str
) -> None:
    """A wrong argument raises in the call with the expected value; nothing is sent or counted."""
    training = client.create_lora_training_client("base").result(PATIENCE_S)
    number = len(server.asked)
    with pytest.raises(kind, match=text):
        attempt(client, training)
    training.optim_step(ADAM).result(PATIENCE_S)
    assert len(server.asked) == number + 2
    assert server.bodies("optim_step")[0]["seq_id"] == 1


def test_data_may_come_from_a_generator(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Any iterable of datums is a batch."""
    training.forward((datum(i) for i in range(3)), "cross_entropy").result(PATIENCE_S)  # type: ignore[arg-type]
    assert len(server.bodies("forward")[0]["forward_input"]["data"]) == 3


def test_every_method_has_its_async_twin(training: tw.TrainingClient) -> None:
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


def test_weights_to_download(server: ScriptedServer) -> None:
    """save_weights_external sends its arguments in order; older wire versions raise."""
    server.on_poll(
        "SaveWeightsExternal", lambda _: ScriptedResponse({"path": "tinker://m1/external_weights/a", "size_bytes": 1})
    )
    with open_client(server.url, wire_version="0.38.0") as client:
        training = client.create_lora_training_client("base")
        saved = training.save_weights_external("a", 60, ["age1x"]).result(PATIENCE_S)
        with pytest.raises(TypeError, match="age_encryption_recipients: expected a list"):
            training.save_weights_external("a", age_encryption_recipients="age1x")  # type: ignore[arg-type]
    assert saved.path == "tinker://m1/external_weights/a"
    expected = {"model_id": "m1", "path": "a", "seq_id": 1, "ttl_seconds": 60, "age_encryption_recipients": ["age1x"]}
    assert sent(server, "save_weights_external") == expected
    with open_client(server.url) as old, pytest.raises(tw.DialectError, match=r"save_weights_external.*0\.16\.1"):
        old.create_lora_training_client("base").save_weights_external("a").result(PATIENCE_S)


def test_unload_model(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The request follows all earlier operations; wire versions without it raise."""
    server.on_poll("UnloadModel", lambda _: ScriptedResponse({"model_id": "m1"}))
    training.optim_step(ADAM)
    assert training.unload_model().result(PATIENCE_S).model_id == "m1"
    assert [request.name for request in server.asked if request.name in ("optim_step", "unload_model")] == [
        "optim_step",
        "unload_model",
    ]
    assert sent(server, "unload_model") == {"model_id": "m1"}
    with open_client(server.url, wire_version="0.38.0") as new, pytest.raises(tw.DialectError, match="unload_model"):
        new.create_lora_training_client("base").unload_model().result(PATIENCE_S)
