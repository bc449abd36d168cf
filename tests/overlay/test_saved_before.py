"""A save whose answer was lost, on a server that knows neither keys nor numbers and refuses it as a second one."""

from __future__ import annotations

from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, open_client
from support.scripted import PATIENCE_S, Answer, Scripted, in_turn

pytestmark = pytest.mark.timeout(60)
TAKEN = Answer({"detail": "Checkpoint 'a' already exists"}, status=409)
LISTING = "training_runs/m1/checkpoints"


def entry(kind: str, name: str) -> dict[str, Any]:
    """A checkpoint as the listing has it."""
    about = {"weights": "training", "sampler_weights": "sampler"}
    path = f"tinker://m1/{kind}/{name}"
    return {"checkpoint_id": name, "checkpoint_type": about[kind], "time": "2026-01-01T00:00:00Z", "tinker_path": path}


def test_a_lost_reply_is_no_conflict(server: Scripted, client: tw.ServiceClient) -> None:
    """The save of the first try is the result, as soon as the server lists it; the client goes on."""
    server.rules["save_weights"] = in_turn(Answer(drop=True), TAKEN)
    other = entry("sampler_weights", "a")
    server.rules[LISTING] = in_turn(
        Answer({"checkpoints": [other]}), Answer({"checkpoints": [other, entry("weights", "a")]})
    )
    training = client.create_lora_training_client("base")
    assert training.save_state("a").result(PATIENCE_S).path == "tinker://m1/weights/a"
    assert len(server.named("save_weights")) == 2
    training.optim_step(ADAM).result(PATIENCE_S)
    assert server.bodies("optim_step")[0]["seq_id"] == 2


def test_sampler_weights_too(server: Scripted, client: tw.ServiceClient) -> None:
    """Those of save_weights_for_sampler, and those that a sampling client is made of; without a listing, by rule."""
    server.rules["save_weights_for_sampler"] = in_turn(Answer(drop=True), TAKEN, Answer({}, status=500), TAKEN)
    server.rules[LISTING] = lambda _: Answer({"detail": "Not Found"}, status=404)
    training = client.create_lora_training_client("base")
    assert training.save_weights_for_sampler("a").result(PATIENCE_S).path == "tinker://m1/sampler_weights/a"
    training.save_weights_and_get_sampling_client("b").result(PATIENCE_S)
    assert server.bodies("create_sampling_session")[0]["model_path"] == "tinker://m1/sampler_weights/b"


def test_a_name_that_was_taken_before_is_a_conflict(server: Scripted, client: tw.ServiceClient) -> None:
    """At once, and without a gap: no try was lost, or the client itself has saved under the name earlier."""
    training = client.create_lora_training_client("base")
    server.rules["save_weights"] = in_turn(TAKEN, server.happy, Answer(drop=True), TAKEN)
    with pytest.raises(tw.ConflictError, match="already exists"):
        training.save_state("a").result(PATIENCE_S)
    assert len(server.named("save_weights")) == 1
    training.save_state("a").result(PATIENCE_S)
    with pytest.raises(tw.ConflictError):
        training.save_state("a").result(PATIENCE_S)
    assert [body["seq_id"] for body in server.bodies("save_weights")] == [1, 1, 2, 2]
    assert not server.named(LISTING)


def test_a_save_that_never_appears_is_a_conflict(server: Scripted) -> None:
    """After max_elapsed."""
    server.rules["save_weights"] = in_turn(Answer(drop=True), TAKEN)
    server.rules[LISTING] = lambda _: Answer({"checkpoints": []})
    policy = tw.RetryConfig(retry_delay_base=0.01, max_elapsed=0.3)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.ConflictError):
        client.create_lora_training_client("base").save_state("a").result(PATIENCE_S)


def test_numbers_that_a_server_counts_though_it_refused(server: Scripted, client: tw.ServiceClient) -> None:
    """The number of a refused operation is tried again, and passed over where the server has counted it."""
    reused = Answer({"detail": "Training request sequence number was reused"}, status=409)
    server.rules["optim_step"] = in_turn(Answer({"detail": "no"}, status=422), reused, server.happy)
    training = client.create_lora_training_client("base")
    with pytest.raises(tw.UnprocessableEntityError):
        training.optim_step(ADAM).result(PATIENCE_S)
    training.optim_step(ADAM).result(PATIENCE_S)
    training.optim_step(ADAM).result(PATIENCE_S)
    assert [body["seq_id"] for body in server.bodies("optim_step")] == [1, 1, 2, 3]
