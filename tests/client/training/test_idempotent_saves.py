"""Tests of status 409 for a save: success if an earlier attempt of the same save caused it, else an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire as tw
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
NAME_CONFLICT = ScriptedResponse({"detail": "Checkpoint 'a' already exists"}, status=409)
SAVES: dict[str, Callable[[tw.TrainingClient], Any]] = {
    "save_weights": lambda training: training.save_state("a"),
    "save_weights_for_sampler": lambda training: training.save_weights_for_sampler("a"),
}
SEGMENTS = {"save_weights": "weights", "save_weights_for_sampler": "sampler_weights"}


class CheckpointStore:
    """Checkpoints of a model on a server that has one per name and responds 409 for a used name."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.names: set[str] = set()
        self.lost_responses = 0
        """Replies to lose from now on."""
        for name in SAVES:
            server.rules[name] = self.save
        server.rules["training_runs/m1/checkpoints"] = self.list_checkpoints

    def save(self, request: RecordedRequest) -> ScriptedResponse:
        checkpoint = f"{SEGMENTS[request.name]}/{request.body['path']}"
        if checkpoint in self.names:
            return NAME_CONFLICT
        self.names.add(checkpoint)
        self.lost_responses -= 1
        return ScriptedResponse(drop=True) if self.lost_responses >= 0 else self.server.healthy_response(request)

    def list_checkpoints(self, _: RecordedRequest) -> ScriptedResponse:
        checkpoints = [
            {
                "checkpoint_id": name,
                "checkpoint_type": "training" if name.startswith("weights") else "sampler",
                "time": "2026-01-01T00:00:00Z",
                "tinker_path": f"tinker://m1/{name}",
            }
            for name in sorted(self.names)
        ]
        return ScriptedResponse({"checkpoints": checkpoints})


@pytest.fixture
def store(server: ScriptedServer) -> CheckpointStore:
    return CheckpointStore(server)


@pytest.mark.parametrize("name", SAVES)
def test_conflict_with_an_earlier_attempt_of_the_save_is_success(
    server: ScriptedServer, store: CheckpointStore, training: tw.TrainingClient, name: str
) -> None:
    """The first attempt saved, its response was lost, the retry is a conflict: the result has the path."""
    store.lost_responses = 1
    assert SAVES[name](training).result(TEST_TIMEOUT_S).path == f"tinker://m1/{SEGMENTS[name]}/a"
    first, second = server.named(name)
    assert first.body == second.body
    assert first.headers["x-idempotency-key"] == second.headers["x-idempotency-key"]


@pytest.mark.parametrize("name", SAVES)
def test_conflict_with_an_earlier_save_raises_at_once(
    server: ScriptedServer, store: CheckpointStore, training: tw.TrainingClient, name: str
) -> None:
    """The error has the server's text, and the request is not retried."""
    SAVES[name](training).result(TEST_TIMEOUT_S)
    with pytest.raises(tw.ConflictError, match="already exists"):
        SAVES[name](training).result(TEST_TIMEOUT_S)
    assert len(server.named(name)) == 2


def test_lost_response_does_not_hide_an_earlier_save(
    server: ScriptedServer, store: CheckpointStore, training: tw.TrainingClient
) -> None:
    """After a lost response, an earlier save under the name is still a conflict."""
    training.save_state("a").result(TEST_TIMEOUT_S)
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), store.save)
    with pytest.raises(tw.ConflictError):
        training.save_state("a").result(TEST_TIMEOUT_S)


def test_second_of_two_saves_under_a_name_is_a_conflict(
    server: ScriptedServer, store: CheckpointStore, training: tw.TrainingClient
) -> None:
    """The first one counts as success, the second one raises."""
    store.lost_responses = 1
    first, second = training.save_state("a"), training.save_state("a")
    assert first.result(TEST_TIMEOUT_S).path == "tinker://m1/weights/a"
    with pytest.raises(tw.ConflictError):
        second.result(TEST_TIMEOUT_S)


def test_conflict_in_the_result_of_a_retry_is_success(
    server: ScriptedServer, store: CheckpointStore, training: tw.TrainingClient
) -> None:
    """Some servers run the retry, too, and report the conflict as its result."""
    store.names.add("weights/a")
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), server.healthy_response)
    server.on_poll("SaveWeights", lambda _: NAME_CONFLICT)
    assert training.save_state("a").result(TEST_TIMEOUT_S).path == "tinker://m1/weights/a"


@pytest.mark.parametrize("listing", [ScriptedResponse({"checkpoints": []}), ScriptedResponse(status=404)])
def test_unexplained_conflict_raises(
    server: ScriptedServer, training: tw.TrainingClient, listing: ScriptedResponse
) -> None:
    """If the server does not have or cannot list the checkpoint, the conflict is raised."""
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), NAME_CONFLICT)
    server.rules["training_runs/m1/checkpoints"] = lambda _: listing
    with pytest.raises(tw.ConflictError, match="already exists"):
        training.save_state("a").result(TEST_TIMEOUT_S)
    assert training.optim_step(tw.AdamParams(learning_rate=1e-3)).result(TEST_TIMEOUT_S)


def test_checkpoint_that_is_being_written_is_awaited(
    server: ScriptedServer, store: CheckpointStore, training: tw.TrainingClient
) -> None:
    """The client waits for a checkpoint that the server has not listed yet."""
    server.rules["save_weights"] = in_order(ScriptedResponse(drop=True), NAME_CONFLICT)
    empty_listing = ScriptedResponse({"checkpoints": []})

    def list_written(request: RecordedRequest) -> ScriptedResponse:
        store.names.add("weights/a")
        return store.list_checkpoints(request)

    server.rules["training_runs/m1/checkpoints"] = in_order(empty_listing, empty_listing, list_written)
    assert training.save_state("a").result(TEST_TIMEOUT_S).path == "tinker://m1/weights/a"


def test_failed_save_leaves_its_name_free(
    server: ScriptedServer, store: CheckpointStore, training: tw.TrainingClient
) -> None:
    """A later save under the name of a failed one can be found."""
    server.rules["save_weights"] = in_order(ScriptedResponse({"detail": "disk full"}, status=422), store.save)
    with pytest.raises(tw.UnprocessableEntityError):
        training.save_state("a").result(TEST_TIMEOUT_S)
    store.lost_responses = 1
    assert training.save_state("a").result(TEST_TIMEOUT_S).path == "tinker://m1/weights/a"


def test_conflict_of_named_sampler_weights_is_success(
    server: ScriptedServer, store: CheckpointStore, training: tw.TrainingClient
) -> None:
    """The same holds for weights saved in order to sample from them."""
    store.lost_responses = 1
    training.save_weights_and_get_sampling_client("a").result(TEST_TIMEOUT_S)
    assert server.bodies("create_sampling_session")[0]["model_path"] == "tinker://m1/sampler_weights/a"
