"""Checkpoint paths: the client rejects paths that cannot be valid, and the server decides about the rest."""

from __future__ import annotations

import concurrent.futures
import re
from collections.abc import Callable
from typing import Any, Protocol

import attrs
import pytest

import tinkerwire as tw
from support.clients import FAST, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
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


class Pending(Protocol):
    """Future, or client whose creation is an operation."""

    def future(self) -> concurrent.futures.Future[Any]:
        """Return the future of the operation."""

    def result(self, timeout: float | None = None) -> object:
        """Wait for the operation and return its result."""


Method = Callable[[tw.ServiceClient, str], Pending]
TRAINING: dict[str, Method] = {
    "load_state": lambda client, path: client.create_lora_training_client("base").load_state(path),
    "load_state_with_optimizer": lambda client, path: client.create_lora_training_client(
        "base"
    ).load_state_with_optimizer(path),
    "create_training_client_from_state": lambda client, path: client.create_training_client_from_state(path, "base"),
    "copy_weights": lambda client, path: client.create_rest_client().copy_weights(path, "project-1"),
}
SAMPLING: dict[str, Method] = {
    "create_sampling_client": lambda client, path: client.create_sampling_client(model_path=path),
    "create_sampling_client of a model": lambda client, path: client.create_lora_training_client(
        "base"
    ).create_sampling_client(path),
}
USING_IDS: dict[str, Method] = {
    "get_training_run": lambda client, path: client.create_rest_client().get_training_run_by_tinker_path(path),
    "delete": lambda client, path: client.create_rest_client().delete_checkpoint_from_tinker_path(path),
    "publish": lambda client, path: client.create_rest_client().publish_checkpoint_from_tinker_path(path),
    "unpublish": lambda client, path: client.create_rest_client().unpublish_checkpoint_from_tinker_path(path),
    "set_ttl": lambda client, path: client.create_rest_client().set_checkpoint_ttl_from_tinker_path(path, 60),
    "archive_url": lambda client, path: client.create_rest_client().get_checkpoint_archive_url_from_tinker_path(path),
}


def call_with_path(method: Method, server: ScriptedServer, path: str) -> tuple[Exception | None, list[str]]:
    """Call a method with a path; return its error, if any, and the requests that name the path."""
    names = path.rpartition("/")[2], path.partition("://")[2].partition("/")[0] or path.strip("/").partition("/")[0]

    def requests() -> list[str]:
        texts = [f"{request.name} {request.body}" for request in server.requests]
        return [text for text in texts if any(name in text for name in names)]

    with open_client(server.url, wire_version="0.35.0", retry=attrs.evolve(FAST, max_attempts=1)) as client:
        error: Exception | None = None
        try:
            operation = method(client, path)
            wait_until(lambda: bool(requests()) or operation.future().done(), "a request or an error")
            if not requests():
                operation.result(TEST_TIMEOUT_S)
        except (ValueError, TypeError, tw.TinkerError) as raised:
            error = raised
    return error, requests()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", [*TRAINING, *SAMPLING, *USING_IDS])
def test_only_paths_that_cannot_be_valid_are_rejected_by_the_client(
    server: ScriptedServer, name: str, path: str
) -> None:
    """Every method sends a path of any form, unless it names weights of the wrong kind or lacks a run."""
    is_wrong = (name in TRAINING and name != "copy_weights" and "/sampler_weights/" in path) or (
        name in SAMPLING and "/weights/" in path
    )
    is_wrong = is_wrong or (name in USING_IDS and path == "checkpoint")
    error, requests = call_with_path({**TRAINING, **SAMPLING, **USING_IDS}[name], server, path)
    assert isinstance(error, ValueError) == is_wrong, error
    assert bool(requests) != is_wrong


@pytest.mark.parametrize(("path", "expected"), [("", ValueError), (" ", ValueError), (None, TypeError), (7, TypeError)])
@pytest.mark.parametrize("name", [*TRAINING, *USING_IDS])
def test_empty_or_non_text_path_is_rejected_before_sending(
    server: ScriptedServer, name: str, path: object, expected: type[Exception]
) -> None:
    """An empty path or a value that is not text raises an error that names the parameter, before a request."""
    with open_client(server.url, wire_version="0.35.0") as client, pytest.raises(expected, match=r"^(tinker_)?path: "):
        {**TRAINING, **USING_IDS}[name](client, path)  # type: ignore[arg-type]


def test_wrong_kind_of_weights_names_the_right_method() -> None:
    """The error names the kind of the weights, their limitation, and the method that returns a valid path."""
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
def test_ids_are_read_from_a_path_of_any_scheme(path: str, run: str, checkpoint: str) -> None:
    """Calls that need ids read them from a path of any scheme."""
    address = parse_checkpoint_address(path)
    assert (address.training_run_id, address.checkpoint_id) == (run, checkpoint)


def test_path_without_ids_names_the_missing_parts() -> None:
    """A single name does not hold the ids that some calls need."""
    with pytest.raises(ValueError, match=re.escape("'a' must name a run and a checkpoint")):
        parse_checkpoint_address("a")


@pytest.mark.parametrize("path", ["other://run-9/first", "run-9/first"])
def test_path_that_the_server_returned_is_loaded_unchanged(server: ScriptedServer, path: str) -> None:
    """The client sends a path that a save returned unchanged when it loads the weights."""
    server.on_poll("SaveWeights", lambda _: ScriptedResponse({"path": path}))
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base")
        training.load_state(training.save_state("first").result(TEST_TIMEOUT_S).path).result(TEST_TIMEOUT_S)
    assert [body["path"] for body in server.bodies("load_weights")] == [path]
