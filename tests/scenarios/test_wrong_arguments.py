"""Tests of wrong argument types in every public call: accepted correctly, or rejected before sending."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, datum, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedServer
from tinkerwire import types
from tinkerwire_base.short_repr import SECRET_FIELDS

pytestmark = pytest.mark.timeout(120)
WIRE = "0.35.0"
LONE_SURROGATE = "a\ud800"
VALUES: Mapping[str, Any] = {
    "zero": 0,
    "negative": -1,
    "float": 1.5,
    "nan": float("nan"),
    "true": True,
    "text": "word",
    "no text": "",
    "half a character": LONE_SURROGATE,
    "bytes": b"x",
    "no bytes": b"",
    "list": ["x"],
    "no list": [],
    "tuple": (1, 2),
    "set": {1},
    "dict": {"a": 1},
    "no dict": {},
    "dict by numbers": {1: "a"},
    "dict of half a character": {"a": LONE_SURROGATE},
    "numpy int": np.int64(1),
    "numpy float": np.float64(1.5),
    "numpy bool": np.bool_(True),
    "numpy array": np.zeros(2),
    "numpy empty array": np.array([]),
    "numpy texts": np.array(["a"]),
    "object": object(),
    "class": dict,
}
ACCEPTED_VALUES: Mapping[str, frozenset[str]] = {
    "str": frozenset({"text", "no text"}),
    "str | os.PathLike[str]": frozenset({"text"}),
    "int": frozenset({"zero", "negative", "numpy int"}),
    "bool": frozenset({"true"}),
    "float": frozenset({"zero", "negative", "float", "numpy float", "numpy int"}),
    "list[str]": frozenset({"list", "no list"}),
    "Mapping[str, str]": frozenset({"dict", "no dict"}),
    "dict[str, str]": frozenset({"dict", "no dict"}),
    "Mapping[str, float | str]": frozenset({"dict", "no dict"}),
    "Mapping[str, Any]": frozenset({"no dict"}),
    "Collection[str]": frozenset({"list", "no list", "numpy texts", "numpy empty array"}),
    "OnWait": frozenset({"class"}),
    "RetryIf": frozenset({"class"}),
    "CustomLossFn | LossHandle": frozenset({"class"}),
    "Callable[[int], object]": frozenset({"class"}),
    "str | Path": frozenset({"text"}),
}
"""By annotation, without None: the values that may pass, and need not."""
ERROR_TERMS = {"default_headers_overrides": "header 'a'", "api_key": "API key", "wire_version": "wire version"}
"""Terms that errors may use for an argument beside its name."""
WEIGHTS, SAMPLER, EXTERNAL = (f"tinker://m1/{kind}/a" for kind in ("weights", "sampler_weights", "external_weights"))
BATCH = {"data": [datum(3)], "loss_fn": "cross_entropy"}
CHECKPOINT = {"training_run_id": "m1", "checkpoint_id": "weights/a"}
DAY = datetime(2025, 1, 1, tzinfo=timezone.utc)


def zeros(data: Any, logprobs: Any) -> Any:
    """Return a custom loss."""
    return 0.0, {}, [np.zeros_like(logprob) for logprob in logprobs]


REQUIRED_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "ServiceClient.create_lora_training_client": {"base_model": "base"},
    "ServiceClient.create_training_client_from_state": {"path": WEIGHTS},
    "ServiceClient.create_training_client_from_state_with_optimizer": {"path": WEIGHTS},
    "ServiceClient.create_sampling_client": {"base_model": "base"},
    "ServiceClient.copy_weights": {"path": WEIGHTS},
    "ServiceClient.download_checkpoint": {"tinker_path": WEIGHTS, "directory": "no-such-folder"},
    "ServiceClient.push_to_hub": {"tinker_path": WEIGHTS},
    "RestClient.download_checkpoint": {"tinker_path": EXTERNAL, "directory": "no-such-folder"},
    "RestClient.download_session_trace": {"session_id": "s1", "file": "no-such-folder/trace"},
    "RestClient.delete_checkpoints": {"tinker_paths": [WEIGHTS]},
    "RestClient.find_checkpoints": {"training_run_id": "m1"},
    "RestClient.get_checkpoint": {"tinker_path": WEIGHTS},
    "TrainingClient.forward": BATCH,
    "TrainingClient.forward_backward": BATCH,
    "TrainingClient.forward_backward_custom": {"data": [datum(3)], "loss_fn": zeros, "arrays": "numpy"},
    "TrainingClient.optim_step": {"optim_params": ADAM},
    "TrainingClient.save_state": {"name": "a"},
    "TrainingClient.save_weights_for_sampler": {"name": "a"},
    "TrainingClient.save_weights_external": {"name": "a"},
    "TrainingClient.load_state": {"path": WEIGHTS},
    "TrainingClient.load_state_with_optimizer": {"path": WEIGHTS},
    "TrainingClient.create_sampling_client": {"model_path": SAMPLER},
    "SamplingClient.sample": {
        "prompt": types.ModelInput.from_ints([1, 2, 3]),
        "num_samples": 1,
        "sampling_params": types.SamplingParams(max_tokens=2),
    },
    "SamplingClient.compute_logprobs": {"prompt": types.ModelInput.from_ints([1, 2, 3])},
    "RestClient.get_training_run": {"training_run_id": "m1"},
    "RestClient.list_checkpoints": {"training_run_id": "m1"},
    "RestClient.delete_checkpoint": CHECKPOINT,
    "RestClient.download_checkpoint_archive": CHECKPOINT,
    "RestClient.get_checkpoint_archive_url": CHECKPOINT,
    "RestClient.set_checkpoint_ttl_from_tinker_path": {"tinker_path": WEIGHTS, "ttl_seconds": 3},
    "RestClient.get_external_weights_urls": {"tinker_path": EXTERNAL},
    "RestClient.copy_weights": {"path": WEIGHTS, "destination_project_id": "p"},
    "RestClient.get_session": {"session_id": "s1"},
    "RestClient.get_sampler": {"sampler_id": "x"},
    "RestClient.assign_session_project": {"session_id": "s1", "project_id": "p"},
    "RestClient.export_session_trace": {"session_id": "s1"},
    "RestClient.get_billing_usage": {"starting_on": DAY, "ending_before": DAY},
}
"""Arguments without which a call cannot be made."""
TESTED_ELSEWHERE = {"create_custom_loss", "close", "result"}
"""Tried elsewhere: one needs torch, one ends the client, one waits for it."""


def list_methods(cls: type) -> list[str]:
    """Return the names of a class's synchronous methods."""
    names = [name for name, _ in inspect.getmembers(cls, callable) if not name.startswith("_")]
    return [f"{cls.__name__}.{name}" for name in names if not name.endswith("_async") and name not in TESTED_ELSEWHERE]


CLIENTS = (tw.ServiceClient, tw.TrainingClient, tw.SamplingClient, tw.RestClient)
METHODS = [call for cls in CLIENTS for call in list_methods(cls)]


@pytest.fixture
def clients(server: ScriptedServer) -> Iterator[Mapping[str, Any]]:
    """Return a client of each class, on a server that responds to every call."""
    default_result, external = server.result, {"path": EXTERNAL, "size_bytes": 1}
    server.result = lambda i: external if i.startswith("save_weights_external") else default_result(i)  # type: ignore[method-assign]
    with open_client(server.url, wire_version=WIRE, project_id="p") as service:
        training = service.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        sampling = service.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        instances = (service, training, sampling, service.create_rest_client())
        yield {type(client).__name__: client for client in instances}


def find_problems(
    call: Any, required: Mapping[str, Any], parameter: inspect.Parameter, server: ScriptedServer
) -> list[str]:
    """Return the problems of a call with values of wrong types for one parameter."""
    annotation = str(parameter.annotation).removesuffix(" | None")
    name, messages = parameter.name, []
    for label, value in VALUES.items():
        if label in ACCEPTED_VALUES.get(annotation, ()):
            continue
        request_count = len(server.requests)
        try:
            result = call(**{**required, name: value})
            if hasattr(result, "result"):
                result.result(TEST_TIMEOUT_S)
            if hasattr(result, "close"):
                result.close()
        except (TypeError, ValueError, tw.TinkerError) as error:
            text = str(error)
            if name not in text and ERROR_TERMS.get(name, name) not in text:
                messages.append(f"{label}: not named in {error!r:.200}")
            if name in SECRET_FIELDS and label == "half a character" and LONE_SURROGATE in text:
                messages.append(f"{label}: shown in {error!r:.200}")
        else:
            messages.append(f"{label}: taken, {result!r:.100}")
        messages += [f"{label}: {request.name} was requested" for request in server.requests[request_count:]]
    return messages


@pytest.mark.parametrize("name", METHODS)
def test_methods_reject_wrong_argument_types_by_name(
    server: ScriptedServer, clients: Mapping[str, Any], name: str
) -> None:
    """The error names the argument, and comes before anything is sent."""
    owner, _, method = name.partition(".")
    call = getattr(clients[owner], method)
    required = REQUIRED_ARGUMENTS.get(name, {"tinker_path": WEIGHTS} if name.endswith("tinker_path") else {})
    if method == "from_sampler_handle":
        required = {"handle": clients[owner].get_sampler_handle()}
    for parameter in inspect.signature(call).parameters.values():
        assert not find_problems(call, required, parameter, server), parameter.name


@pytest.mark.parametrize("cls", [tw.ServiceClient, tw.RestClient, tw.AdminClient, tw.RetryConfig, tw.ChunkLimits])
def test_constructors_reject_wrong_argument_types_by_name(
    cls: type, server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constructors name the argument as well."""
    monkeypatch.chdir(tmp_path)  # a valid path of a trace makes a file
    required: dict[str, Any] = {}
    if cls in (tw.ServiceClient, tw.RestClient, tw.AdminClient):
        required["base_url"] = server.url
    if cls is tw.ServiceClient:
        required["wire_version"] = WIRE
    for parameter in inspect.signature(cls).parameters.values():
        if not parameter.name.startswith("_") and parameter.kind is not parameter.VAR_KEYWORD:
            assert not find_problems(cls, required, parameter, server), parameter.name


@pytest.mark.parametrize("label", VALUES)
def test_invalid_close_statuses_are_rejected(server: ScriptedServer, label: str) -> None:
    """An invalid status is rejected, and the client stays open."""
    with open_client(server.url, wire_version=WIRE) as client:
        with pytest.raises(ValueError, match=r"status: must be one of 'success', 'errored', 'interrupted', got "):
            client.close(VALUES[label])
        if label not in ACCEPTED_VALUES["str"]:
            with pytest.raises((TypeError, ValueError), match="detail: "):
                client.close(detail=VALUES[label])
        assert client.get_server_capabilities().supported_models


@pytest.mark.parametrize("status", ["success", "errored", "interrupted"])
def test_each_close_status_is_reported(server: ScriptedServer, status: Any) -> None:
    """Each status reaches the server."""
    with open_client(server.url, wire_version=WIRE) as client:
        client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        client.close(status, "why").result(TEST_TIMEOUT_S)
    bodies = [request.body for request in server.requests if "finish" in request.name]
    assert [(body["reason"]["type"], body["detail"]) for body in bodies] == [(status, "why")]
