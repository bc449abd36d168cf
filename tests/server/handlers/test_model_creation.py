"""Tests of models created from weights or by load_weights, of optimizers, and of opt-in behaviour."""

from __future__ import annotations

from typing import Any

import pytest

from support.server_fixtures import Caller, ServerFactory

NANO = "tinkerwire/byte-nano"


@pytest.fixture
def call(serve: ServerFactory) -> Any:
    return serve(wire_version="0.38.0")


@pytest.fixture
def model_id(call: Caller) -> str:
    """Create a model and train it for a step."""
    created_id: str = call.create_model()
    call.result(call.post_protobuf(created_id).body["request_id"])
    call.run("optim_step", {"model_id": created_id, "adam_params": {"learning_rate": 0.01}})
    return created_id


def _load(session_id: str, number: int, path: str, **changes: Any) -> dict[str, Any]:
    return {"session_id": session_id, "model_seq_id": number, "path": path, "optimizer": False, **changes}


def test_model_is_created_from_weights(call: Caller, model_id: str) -> None:
    """Its id follows from session and seq_id; its loss is that of the weights; a resend creates no second model."""
    path = call.run("save_weights", {"model_id": model_id, "path": "a"})["path"]
    session_id = model_id.partition(":")[0]
    body = _load(session_id, 5, path, user_metadata={"a": 1}, optimizer_config={"type": "adamw"})
    first = call.submit("load_weights", body)
    assert call.submit("load_weights", body) == first
    assert call.result(first) == {"path": path, "model_id": f"{session_id}:train:5", "type": "load_weights"}
    assert call.protobuf_loss(f"{session_id}:train:5") == call.protobuf_loss(model_id)
    info = call.post("get_info", {"model_id": f"{session_id}:train:5"}).body
    assert (info["lora_rank"], info["optimizer_config"]) == (4, {"type": "adamw"})
    run = call("GET", f"training_runs/{session_id}:train:5").body
    assert run["user_metadata"] == {"a": "1"}


@pytest.mark.parametrize("optimizer", [False, True])
def test_optimizer_is_loaded_on_request_only(call: Caller, model_id: str, optimizer: bool) -> None:
    """The step count continues, or restarts."""
    path = call.run("save_weights", {"model_id": model_id, "path": "a"})["path"]
    body = {**_load(model_id.partition(":")[0], 1, path), "optimizer": optimizer}
    loaded = call.run("load_weights", body)["model_id"]
    metrics = call.run("optim_step", {"model_id": loaded, "adam_params": {}})["metrics"]
    assert metrics["optimizer_step:max"] == (2 if optimizer else 1)


def test_invalid_creation_is_rejected_with_the_field(call: Caller, model_id: str) -> None:
    """The rejection comes before the server creates a model."""
    path = call.run("save_weights", {"model_id": model_id, "path": "a"})["path"]
    session_id = model_id.partition(":")[0]
    valid_request = _load(session_id, 1, path)
    invalid_requests: list[tuple[dict[str, Any], str]] = [
        ({**valid_request, "base_model": "tinkerwire/byte-small"}, "base_model"),
        ({**valid_request, "optimizer_config": {"type": "dimuon"}}, "optimizer_config"),
        ({**valid_request, "seq_id": 1}, "seq_id"),
        ({**valid_request, "model_id": model_id}, "session_id"),
        ({**valid_request, "path": path.replace("/weights/", "/sampler_weights/")}, "path"),
        ({"path": path, "optimizer": False}, "model_id"),
    ]
    for body, field in invalid_requests:
        rejection = call.post("load_weights", body)
        assert (rejection.status, rejection.body["detail"][0]["loc"]) == (422, ["body", field])
    assert call.post("load_weights", {**valid_request, "path": path + "x"}).status == 404
    assert call("GET", "training_runs").body["cursor"]["total_count"] == 1


def test_other_optimizers_than_adamw_are_rejected(call: Caller, model_id: str) -> None:
    """The error names the optimizer, at creation and at a step."""
    body = {"session_id": model_id.partition(":")[0], "model_seq_id": 9, "base_model": NANO}
    for config in ({"type": "dimuon", "version": 1}, {"type": "sgd", "momentum": 1}):
        rejection = call.post("create_model", {**body, "optimizer_config": config})
        assert (rejection.status, config["type"] in rejection.body["detail"][0]["msg"]) == (422, True)
    step = {"model_id": model_id, "optimizer_params": {"type": "dimuon", "learning_rate": 0.1}}
    rejection = call.post("optim_step", step)
    assert (rejection.status, "dimuon" in rejection.body["detail"][0]["msg"]) == (422, True)


def test_checkpoint_is_replaced_on_request_only(call: Caller, model_id: str) -> None:
    """The new metadata replaces the old."""
    body = {"model_id": model_id, "path": "a", "user_metadata": {"n": "1"}}
    path = call.run("save_weights", body)["path"]
    old = call.protobuf_loss(model_id)
    call.result(call.post_protobuf(model_id).body["request_id"])
    call.run("optim_step", {"model_id": model_id, "adam_params": {"learning_rate": 0.01}})
    assert "already exists" in call.run("save_weights", body)["error"]
    assert call.run("save_weights", {**body, "overwrite": True, "user_metadata": {"n": "2"}})["path"] == path
    checkpoints = call("GET", f"training_runs/{model_id}/checkpoints").body["checkpoints"]
    assert [checkpoint["user_metadata"] for checkpoint in checkpoints] == [{"n": "2"}]
    loaded = call.run("load_weights", _load(model_id.partition(":")[0], 1, path))["model_id"]
    assert call.protobuf_loss(loaded) == call.protobuf_loss(model_id) < old
