"""Paths of saved weights: the client refuses what is certainly wrong, and the server decides about the rest."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import FAST, open_client, wait_until
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer
from tinkerwire._checkpoints.paths import parse_checkpoint_address, reject_path_kind

PATHS = [
    "tinker://run-1/weights/ckpt-1",
    "tinker://run-1/sampler_weights/ckpt-1",
    "skyrl://run-1/weights/ckpt-1",
    "TINKER://run-1/ckpt-1",
    "s3://bucket/some/where/run-1/weights/ckpt-1",
    "https://host/run-1/ckpt",
    "run-1/checkpoint",
    "/srv/models/run-1",
    "checkpoint",
]
Method = Callable[[tw.ServiceClient, str], Any]
TRAINING: dict[str, Method] = {
    "load_state": lambda c, path: c.create_lora_training_client("base").load_state(path),
    "load_state_with_optimizer": lambda c, path: c.create_lora_training_client("base").load_state_with_optimizer(path),
    "create_training_client_from_state": lambda c, path: c.create_training_client_from_state(path, "base"),
    "copy_weights": lambda c, path: c.create_rest_client().copy_weights(path, "project-1"),
}
SAMPLING: dict[str, Method] = {
    "create_sampling_client": lambda c, path: c.create_sampling_client(model_path=path),
    "create_sampling_client of a model": lambda c, path: c.create_lora_training_client("base").create_sampling_client(
        path
    ),
}
BY_IDS: dict[str, Method] = {
    "get_training_run": lambda c, path: c.create_rest_client().get_training_run_by_tinker_path(path),
    "delete": lambda c, path: c.create_rest_client().delete_checkpoint_from_tinker_path(path),
    "publish": lambda c, path: c.create_rest_client().publish_checkpoint_from_tinker_path(path),
    "unpublish": lambda c, path: c.create_rest_client().unpublish_checkpoint_from_tinker_path(path),
    "set_ttl": lambda c, path: c.create_rest_client().set_checkpoint_ttl_from_tinker_path(path, 60),
    "archive_url": lambda c, path: c.create_rest_client().get_checkpoint_archive_url_from_tinker_path(path),
}


def outcome(method: Method, server: ScriptedServer, path: str) -> tuple[Exception | None, list[str]]:
    """The error by which a method refuses a path, if any, and the requests that name the path."""
    names = path.rpartition("/")[2], path.partition("://")[2].partition("/")[0] or path.strip("/").partition("/")[0]

    def requests() -> list[str]:
        texts = [f"{asked.name} {asked.body}" for asked in server.asked]
        return [text for text in texts if any(name in text for name in names)]

    with open_client(server.url, wire_version="0.35.0", retry=attrs.evolve(FAST, max_attempts=1)) as client:
        error: Exception | None = None
        try:
            started = method(client, path)
            wait_until(lambda: bool(requests()) or started.future().done(), "a request or an error")
            if not requests():
                started.result(PATIENCE_S)
        except (ValueError, TypeError, tw.TinkerError) as raised:
            error = raised
    return error, requests()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", [*TRAINING, *SAMPLING, *BY_IDS])
def test_the_server_decides_about_a_path(server: ScriptedServer, name: str, path: str) -> None:
    """Every method sends a path of any form, unless its weights are surely of the wrong kind, or it has no run."""
    is_wrong = (name in TRAINING and name != "copy_weights" and "/sampler_weights/" in path) or (
        name in SAMPLING and "/weights/" in path
    )
    is_wrong = is_wrong or (name in BY_IDS and path == "checkpoint")
    error, requests = outcome({**TRAINING, **SAMPLING, **BY_IDS}[name], server, path)
    assert isinstance(error, ValueError) == is_wrong, error
    assert bool(requests) != is_wrong


@pytest.mark.parametrize(("path", "expected"), [("", ValueError), (" ", ValueError), (None, TypeError), (7, TypeError)])
@pytest.mark.parametrize("name", [*TRAINING, *BY_IDS])
def test_what_is_certainly_no_path_is_refused(
    server: ScriptedServer, name: str, path: Any, expected: type[Exception]
) -> None:
    """An empty path and what is not text are refused by name, before anything is sent."""
    with open_client(server.url, wire_version="0.35.0") as client, pytest.raises(expected, match=r"^(tinker_)?path: "):
        {**TRAINING, **BY_IDS}[name](client, path)


def test_the_wrong_kind_names_the_right_one() -> None:
    """The error names the kind of the weights, their limitation, and the method that returns the right path."""
    with pytest.raises(
        ValueError, match=r"holds sampler weights, which cannot load training state; .* save_state returned"
    ):
        reject_path_kind("sampler", "other://m/sampler_weights/a", "load training state")
    with pytest.raises(ValueError, match=r"holds training weights, .* save_weights_for_sampler returned"):
        reject_path_kind("training", "tinker://m/weights/a", "be sampled from")


@pytest.mark.parametrize(
    ("path", "run", "checkpoint"),
    [
        ("tinker://run-1/weights/a", "run-1", "weights/a"),
        ("tinker://s1:train:0/sampler_weights/a", "s1:train:0", "sampler_weights/a"),
        ("tinker://run-1/a", "run-1", "a"),
        ("other://run-1/a/b", "run-1", "a/b"),
        ("run-1/a", "run-1", "a"),
    ],
)
def test_the_ids_in_a_path(path: str, run: str, checkpoint: str) -> None:
    """Calls that need ids take them from a path of any scheme."""
    found = parse_checkpoint_address(path)
    assert (found.training_run_id, found.checkpoint_id) == (run, checkpoint)


def test_a_path_without_ids_says_what_is_missing() -> None:
    """The calls by ids cannot be made of a single name."""
    with pytest.raises(ValueError, match=re.escape("'a' must name a run and a checkpoint")):
        parse_checkpoint_address("a")


@pytest.mark.parametrize("path", ["other://run-9/first", "run-9/first"])
def test_a_path_that_the_server_gave_is_loaded(server: ScriptedServer, path: str) -> None:
    """The path that a save returns can be loaded, and goes back unchanged."""
    server.on_poll("SaveWeights", lambda _: ScriptedResponse({"path": path}))
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base")
        training.load_state(training.save_state("first").result(PATIENCE_S).path).result(PATIENCE_S)
    assert [body["path"] for body in server.bodies("load_weights")] == [path]
