"""Tests of creating a TrainingClient, for a base model and from saved state."""

from __future__ import annotations

import asyncio

import pytest

import tinkerwire as tw
from support.clients import ADAM
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/weights/a"


def test_creation_sends_every_argument(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Every argument arrives in its field; omitted ones are left to the server."""
    client.create_lora_training_client(
        "base", rank=4, seed=7, train_mlp=False, train_unembed=False, user_metadata={"a": "b"}
    ).result(TEST_TIMEOUT_S)
    assert server.sole_body("create_model") == {
        "session_id": "s1",
        "model_seq_id": 0,
        "base_model": "base",
        "user_metadata": {"a": "b"},
        "lora_config": {"rank": 4, "seed": 7, "train_unembed": False, "train_mlp": False, "train_attn": True},
    }


@pytest.mark.parametrize("optimizer", [False, True])
def test_client_from_state_is_created_and_loaded(
    server: ScriptedServer, client: tw.ServiceClient, optimizer: bool
) -> None:
    """The model is created like the saved one and loaded under seq_id 1, with or without optimizer."""
    info = {"base_model": "found", "is_lora": True, "lora_rank": 3, "train_mlp": False, "train_unembed": None}
    server.rules["weights_info"] = lambda _: ScriptedResponse(info)
    make = (
        client.create_training_client_from_state_with_optimizer
        if optimizer
        else client.create_training_client_from_state
    )
    training = make(PATH, user_metadata={"a": "b"})
    training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert server.bodies("weights_info")[0] == {"tinker_path": PATH}
    model = server.sole_body("create_model")
    assert (model["base_model"], model["user_metadata"]) == ("found", {"a": "b"})
    assert model["lora_config"] == {"rank": 3, "train_unembed": True, "train_mlp": False, "train_attn": True}
    assert server.sole_body("load_weights") == {"model_id": "m1", "path": PATH, "optimizer": optimizer, "seq_id": 1}
    assert server.sole_body("optim_step")["seq_id"] == 2


def test_async_client_from_state_waits_for_the_load(server: ScriptedServer, client: tw.ServiceClient) -> None:
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
def test_training_run_replaces_missing_weights_info(
    server: ScriptedServer, client: tw.ServiceClient, missing: ScriptedResponse
) -> None:
    """Without weights_info, the training run has rank and metadata; the user's metadata is merged over it."""
    server.rules["weights_info"] = lambda _: missing
    server.rules["training_runs/m1"] = lambda _: ScriptedResponse(RUN)
    client.create_training_client_from_state(PATH, user_metadata={"a": "b"}).result(TEST_TIMEOUT_S)
    model = server.sole_body("create_model")
    assert (model["base_model"], model["lora_config"]["rank"]) == ("of-run", 5)
    assert model["user_metadata"] == {"kept": "1", "a": "b"}


@pytest.mark.parametrize(
    ("responses", "reason"),
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
    server: ScriptedServer, client: tw.ServiceClient, responses: dict[str, ScriptedResponse], reason: str
) -> None:
    """If the server has no information about the weights, client and operations raise; no model is created."""
    for name, response in responses.items():
        server.rules[name] = in_order(response)
    training = client.create_training_client_from_state(PATH)
    for waiting in (training, training.optim_step(ADAM)):
        with pytest.raises(tw.TinkerError, match=reason):
            waiting.result(TEST_TIMEOUT_S)
    assert not server.named("create_model")


def test_path_of_unknown_form_requires_weights_info(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A path in a server's own form works with weights_info; otherwise, operations raise the server's error."""
    client.create_training_client_from_state("tinker://bad").result(TEST_TIMEOUT_S)
    server.rules["weights_info"] = lambda _: ScriptedResponse(status=404)
    training = client.create_training_client_from_state("tinker://bad")
    with pytest.raises(ValueError, match="tinker://bad' must name a run and a checkpoint"):
        training.result(TEST_TIMEOUT_S)
    with pytest.raises(tw.TinkerError, match=r"not created: .*tinker://bad"):
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
