"""A 409 for a save: success when it is about what this very save has just written, and an error otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire as tw
from support.scripted import PATIENCE_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
TAKEN = ScriptedResponse({"detail": "Checkpoint 'a' already exists"}, status=409)
SAVES: dict[str, Callable[[tw.TrainingClient], Any]] = {
    "save_weights": lambda training: training.save_state("a"),
    "save_weights_for_sampler": lambda training: training.save_weights_for_sampler("a"),
}
SEGMENTS = {"save_weights": "weights", "save_weights_for_sampler": "sampler_weights"}


class Shelf:
    """Checkpoints of the model, as a server keeps them: one of a name; each name that is taken is a 409."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.names: set[str] = set()
        self.lost = 0
        """Replies to lose from now on."""
        for name in SAVES:
            server.rules[name] = self.save
        server.rules["training_runs/m1/checkpoints"] = self.listed

    def save(self, asked: RecordedRequest) -> ScriptedResponse:
        checkpoint = f"{SEGMENTS[asked.name]}/{asked.body['path']}"
        if checkpoint in self.names:
            return TAKEN
        self.names.add(checkpoint)
        self.lost -= 1
        return ScriptedResponse(drop=True) if self.lost >= 0 else self.server.healthy_response(asked)

    def listed(self, _: RecordedRequest) -> ScriptedResponse:
        found = [
            {
                "checkpoint_id": name,
                "checkpoint_type": "training" if name.startswith("weights") else "sampler",
                "time": "2026-01-01T00:00:00Z",
                "tinker_path": f"tinker://m1/{name}",
            }
            for name in sorted(self.names)
        ]
        return ScriptedResponse({"checkpoints": found})


@pytest.fixture
def shelf(server: ScriptedServer) -> Shelf:
    return Shelf(server)


@pytest.mark.parametrize("name", SAVES)
def test_what_was_just_saved(server: ScriptedServer, shelf: Shelf, training: tw.TrainingClient, name: str) -> None:
    """The first sending saved, its reply was lost, the resend is a conflict: that is success, with the path."""
    shelf.lost = 1
    assert SAVES[name](training).result(PATIENCE_S).path == f"tinker://m1/{SEGMENTS[name]}/a"
    first, second = server.named(name)
    assert first.body == second.body
    assert first.headers["x-idempotency-key"] == second.headers["x-idempotency-key"]


@pytest.mark.parametrize("name", SAVES)
def test_a_name_that_is_taken(server: ScriptedServer, shelf: Shelf, training: tw.TrainingClient, name: str) -> None:
    """A conflict about an earlier save is an error, at once, in the server's words; a second sending cannot help."""
    SAVES[name](training).result(PATIENCE_S)
    with pytest.raises(tw.ConflictError, match="already exists"):
        SAVES[name](training).result(PATIENCE_S)
    assert len(server.named(name)) == 2


def test_a_name_that_is_taken_and_a_lost_reply(
    server: ScriptedServer, shelf: Shelf, training: tw.TrainingClient
) -> None:
    """A lost reply makes nobody's earlier save this one's."""
    training.save_state("a").result(PATIENCE_S)
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), shelf.save)
    with pytest.raises(tw.ConflictError):
        training.save_state("a").result(PATIENCE_S)


def test_two_saves_of_one_name(server: ScriptedServer, shelf: Shelf, training: tw.TrainingClient) -> None:
    """Of two under way, the first is found again, and the second is a conflict."""
    shelf.lost = 1
    first, second = training.save_state("a"), training.save_state("a")
    assert first.result(PATIENCE_S).path == "tinker://m1/weights/a"
    with pytest.raises(tw.ConflictError):
        second.result(PATIENCE_S)


def test_a_conflict_that_the_promise_tells(server: ScriptedServer, shelf: Shelf, training: tw.TrainingClient) -> None:
    """Servers that run the resend, too, find the conflict only then."""
    shelf.names.add("weights/a")
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), server.healthy_response)
    server.on_poll("SaveWeights", lambda _: TAKEN)
    assert training.save_state("a").result(PATIENCE_S).path == "tinker://m1/weights/a"


@pytest.mark.parametrize("listed", [ScriptedResponse({"checkpoints": []}), ScriptedResponse(status=404)])
def test_a_conflict_about_something_else(
    server: ScriptedServer, training: tw.TrainingClient, listed: ScriptedResponse
) -> None:
    """When the server does not have the checkpoint, or cannot say, the conflict stays one."""
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), TAKEN)
    server.rules["training_runs/m1/checkpoints"] = lambda _: listed
    with pytest.raises(tw.ConflictError, match="already exists"):
        training.save_state("a").result(PATIENCE_S)
    assert training.optim_step(tw.AdamParams(learning_rate=1e-3)).result(PATIENCE_S)


def test_a_save_that_is_still_being_written(server: ScriptedServer, shelf: Shelf, training: tw.TrainingClient) -> None:
    """It is waited for."""
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), TAKEN)
    nothing = ScriptedResponse({"checkpoints": []})

    def listed(asked: RecordedRequest) -> ScriptedResponse:
        shelf.names.add("weights/a")
        return shelf.listed(asked)

    server.rules["training_runs/m1/checkpoints"] = in_order(nothing, nothing, listed)
    assert training.save_state("a").result(PATIENCE_S).path == "tinker://m1/weights/a"


def test_a_failed_save_takes_no_name(server: ScriptedServer, shelf: Shelf, training: tw.TrainingClient) -> None:
    """A name whose save failed is free: a later save of it is found again."""
    server.rules["save_weights"] = in_order(ScriptedResponse({"detail": "disk full"}, status=422), shelf.save)
    with pytest.raises(tw.UnprocessableEntityError):
        training.save_state("a").result(PATIENCE_S)
    shelf.lost = 1
    assert training.save_state("a").result(PATIENCE_S).path == "tinker://m1/weights/a"


def test_a_sampling_client_of_what_was_just_saved(
    server: ScriptedServer, shelf: Shelf, training: tw.TrainingClient
) -> None:
    """The same for weights that are saved under a name in order to sample from them."""
    shelf.lost = 1
    training.save_weights_and_get_sampling_client("a").result(PATIENCE_S)
    assert server.bodies("create_sampling_session")[0]["model_path"] == "tinker://m1/sampler_weights/a"
