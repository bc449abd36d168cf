"""Tests of exported and copied weights, of the end of sessions, and of unsupported operations."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest

from support.server_fixtures import Caller, ServerFactory
from tinkerwire._server.handlers.not_implemented import REASONS
from tinkerwire_generated.operations import OPERATIONS

NEWEST = "0.38.0"


@pytest.fixture
def call(serve: ServerFactory, tmp_path: Path) -> Any:
    return serve(wire_version=NEWEST, folder=tmp_path / "data")


def test_external_save_is_downloadable(call: Caller) -> None:
    """The URL needs no key and leads to the adapter's arrays; the checkpoint is listed as external."""
    model_id = call.create_model()
    saved = call.run("save_weights_external", {"model_id": model_id, "path": "out", "seq_id": 1})
    assert saved["path"].endswith("/external_weights/out")
    checkpoint = call("GET", f"training_runs/{model_id}/checkpoints").body["checkpoints"][0]
    assert (checkpoint["checkpoint_type"], checkpoint["size_bytes"]) == ("external", saved["size_bytes"])
    reply = call("GET", f"training_runs/{model_id}/checkpoints/external_weights/out/external_weights_urls")
    content = Path(url2pathname(urlsplit(reply.body["urls"]["out.npz"]).path)).read_bytes()
    assert len(content) == saved["size_bytes"]
    with np.load(io.BytesIO(content)) as file:
        assert any("lora" in name for name in file.files)


def test_other_saves_are_not_downloadable(call: Caller) -> None:
    """Encryption is rejected too, and external weights cannot be loaded."""
    model_id = call.create_model()
    call.run("save_weights", {"model_id": model_id, "path": "a"})
    assert call("GET", f"training_runs/{model_id}/checkpoints/weights/a/external_weights_urls").status == 404
    body = {"model_id": model_id, "path": "out", "age_encryption_recipients": ["age1x"]}
    assert call.post("save_weights_external", body).status == 422


def test_older_versions_do_not_list_external_weights(call: Caller, serve: ServerFactory, tmp_path: Path) -> None:
    """A server of an older version on the same folder lists what its clients can read."""
    model_id = call.create_model()
    call.run("save_weights_external", {"model_id": model_id, "path": "out"})
    call.run("save_weights", {"model_id": model_id, "path": "a"})
    call.server.close()
    older = serve(wire_version="0.16.1", folder=tmp_path / "data")
    listing = older("GET", f"training_runs/{model_id}/checkpoints").body["checkpoints"]
    assert [checkpoint["checkpoint_id"] for checkpoint in listing] == ["weights/a"]


def test_copy_is_a_separate_run(call: Caller) -> None:
    """The copy outlives the original, and one key creates one copy."""
    model_id = call.create_model()
    path = call.run("save_weights", {"model_id": model_id, "path": "a", "user_metadata": {"n": "1"}})["path"]
    body = {"source_path": path, "destination_project_id": "p", "ttl_seconds": 60}
    copied = call.post("copy_weights", body, key="k").body["tinker_path"]
    assert call.post("copy_weights", body, key="k").body["tinker_path"] == copied != path
    assert call("DELETE", f"training_runs/{model_id}/checkpoints/weights/a").status == 204
    assert call.post("weights_info", {"tinker_path": copied}).body["lora_rank"] == 4
    run_id = copied.removeprefix("tinker://").partition("/")[0]
    checkpoint = call("GET", f"training_runs/{run_id}/checkpoints").body["checkpoints"][0]
    assert checkpoint["user_metadata"] == {"n": "1"}
    assert checkpoint["expires_at"] is not None
    assert call.post("copy_weights", body).status == 404


def test_copy_of_an_older_client_has_session_and_number(serve: ServerFactory) -> None:
    """Its number counts with the models of the session."""
    call = serve(wire_version="0.28.1")
    model_id = call.create_model()
    session_id = model_id.partition(":")[0]
    path = call.run("save_weights", {"model_id": model_id, "path": "a"})["path"]
    body = {"session_id": session_id, "model_seq_id": 0, "source_path": path}
    assert call.post("copy_weights", body).body["tinker_path"] == f"tinker://{session_id}:copy:0/weights/a"
    assert call.post("copy_weights", body).status == 409
    assert call.post("copy_weights", {"source_path": path}).status == 422


def test_session_has_its_names_until_it_ends(call: Caller) -> None:
    """The info has the names of its creation; after one client ends it, others can still use it."""
    opened = {"tags": [], "user_metadata": {"a": 1}, "sdk_version": NEWEST, "display_name": "mine"}
    session_id = call.post("create_session", opened).body["session_id"]
    session = call("GET", f"sessions/{session_id}").body
    assert (session["display_name"], session["user_metadata"]) == ("mine", {"a": "1"})
    finish = {"reason": {"type": "success"}, "detail": None}
    assert call.post(f"sessions/{session_id}/finish", finish).status == 204
    assert call.post("session_heartbeat", {"session_id": session_id}).status == 200
    assert call.post("sessions/none/finish", finish).status == 404
    assert call("PUT", f"sessions/{session_id}/project", {"project_id": "p"}).status == 204
    assert call.post(f"sessions/{session_id}/finish", {"reason": {"type": "bored"}, "detail": None}).status == 422


def test_usage_is_empty_and_storage_is_free(call: Caller) -> None:
    """The storage is that of all checkpoints; none belongs to a project."""
    span = [("starting_on", "2026-01-01T00:00:00Z"), ("ending_before", "2026-01-02T00:00:00Z")]
    assert call("GET", OPERATIONS["get_billing_usage"].path, query=span).body["data"] == []
    path = OPERATIONS["get_checkpoint_storage_usage"].path
    assert call("GET", path).body["data"] == []
    saved = call.run("save_weights_external", {"model_id": call.create_model(), "path": "out", "seq_id": 1})
    (item,) = call("GET", path).body["data"]
    assert (item["checkpoint_count"], item["size_bytes"]) == (1, saved["size_bytes"])
    assert item["estimated_monthly_cost_usd"] == 0
    assert call("GET", path, query=[("project_id", "p")]).body["data"] == []


def test_trace_of_a_session_is_a_failed_export(call: Caller) -> None:
    """The official SDK repeats the request after a 501, and ends with the reason after this response."""
    session_id = call.post("create_session", {"tags": [], "user_metadata": {}, "sdk_version": NEWEST}).body[
        "session_id"
    ]
    reply = call("GET", f"sessions/{session_id}/trace_export")
    assert (reply.status, reply.body["status"]) == (200, "failed")
    assert "does not keep traces" in reply.body["error"]
    assert call("GET", "sessions/none/trace_export").status == 404


BODIES: dict[str, Any] = {
    "search_sessions": {},
    "create_custom_loss": {
        "session_id": "s",
        "custom_loss_seq_id": 0,
        "name": "l",
        "inputs": [],
        "graph": {"format": 1, "nodes": []},
    },
    "create_api_key": {"name": "n", "note": ""},
}
QUERIES: dict[str, list[tuple[str, str]]] = {"get_audit_log": []}


@pytest.mark.parametrize("name", sorted(REASONS))
def test_unsupported_operation_is_501_without_retry(serve: ServerFactory, name: str) -> None:
    """The error has the reason, and clients do not retry."""
    version = "0.28.1" if name in ("auth_config", "create_api_key") else NEWEST
    row = OPERATIONS[name]
    path = row.path.format(session_id="s")
    reply = serve(wire_version=version)(row.method, path, BODIES.get(name), query=QUERIES.get(name, ()))
    assert (reply.status, reply.headers.get("x-should-retry")) == (501, "false"), reply
    assert REASONS[name] in reply.body["detail"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prompt_logprobs_last_n": 1, "prompt_logprobs": True}, "prompt_logprobs_last_n"),
        ({"prompt_logprobs_last_n": 0, "prompt_logprobs": True}, "prompt_logprobs_last_n"),
        ({"prompt_logprobs_last_n": 1}, "prompt_logprobs_last_n"),
        ({"target_prompt_logprobs": {"data": [1.0], "dtype": "float32", "shape": [1, 1]}}, "target_prompt_logprobs"),
        ({"target_prompt_logprobs": {"data": [1], "dtype": "int64"}}, "target_prompt_logprobs"),
    ],
)
def test_invalid_sampling_field_is_rejected(call: Caller, changes: Any, field: str) -> None:
    """The error comes before any draw and names the field."""
    body = {"base_model": "tinkerwire/byte-nano", "prompt": {"chunks": [{"tokens": [1]}]}, "sampling_params": {}}
    rejection = call.post("asample", {**body, **changes})
    assert (rejection.status, rejection.body["detail"][0]["loc"]) == (422, ["body", field])
