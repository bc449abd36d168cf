"""Tests of the validation of requests against the contract: errors have the field and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from support.server_fixtures import Caller, ServerFactory

SESSION = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
MODEL = {"session_id": "s", "model_seq_id": 0, "base_model": "tinkerwire/byte-nano"}
TEXT = {"chunks": [{"tokens": [1, 2]}]}
SAMPLE = {"prompt": TEXT, "sampling_params": {}, "base_model": "tinkerwire/byte-nano"}
TARGETS = {"data": [1, 2], "dtype": "int64"}


def _make_training_request(datum: Any = None, **fields: Any) -> dict[str, Any]:
    example = datum if datum is not None else {"model_input": TEXT, "loss_fn_inputs": {"target_tokens": TARGETS}}
    return {"model_id": "m", "forward_backward_input": {"data": [example], "loss_fn": "cross_entropy", **fields}}


def _make_datum(**tensor: Any) -> dict[str, Any]:
    return _make_training_request({"model_input": TEXT, "loss_fn_inputs": {"target_tokens": {**TARGETS, **tensor}}})


DATUM = "forward_backward_input.data.0"
TENSOR = f"{DATUM}.loss_fn_inputs.target_tokens"

BAD_BODIES: list[tuple[str, Any, str, str]] = [
    ("create_session", {"tags": []}, "user_metadata", "required"),
    ("create_session", {**SESSION, "tags": "a"}, "tags", 'expected array, got "a"'),
    ("create_session", {**SESSION, "tags": [1]}, "tags.0", "expected string, got 1"),
    ("create_session", {**SESSION, "user_metadata": 3}, "user_metadata", "expected object or null, got 3"),
    ("create_session", {**SESSION, "type": "create_model"}, "type", 'expected "create_session"'),
    ("create_model", {**MODEL, "lora_config": {}}, "lora_config.rank", "required"),
    ("create_model", {**MODEL, "lora_config": {"rank": "8"}}, "lora_config.rank", 'expected integer, got "8"'),
    ("create_model", {**MODEL, "lora_config": {"rank": 8, "alpha": 1}}, "lora_config.alpha", "unknown field"),
    ("create_model", {**MODEL, "model_seq_id": 1.0}, "model_seq_id", "expected"),
    ("create_model", {**MODEL, "model_seq_id": 2**63}, "model_seq_id", ""),
    ("create_model", {**MODEL, "model_seq_id": True}, "model_seq_id", "expected integer, got true"),
    ("create_model", {**MODEL, "checkpoint_name": "x"}, "checkpoint_name", "unknown field"),
    ("create_model", [], "", "expected object, got []"),
    (
        "forward_backward",
        _make_training_request(loss_fn="mse"),
        "forward_backward_input.loss_fn",
        "expected one of cross_entropy",
    ),
    (
        "forward_backward",
        _make_training_request(loss_fn_config={"a": "b"}),
        "forward_backward_input.loss_fn_config.a",
        "number",
    ),
    ("forward_backward", _make_datum(data=[1, "x"]), f"{TENSOR}.data.1", 'expected number, got "x"'),
    ("forward_backward", _make_datum(data=[None, 1]), f"{TENSOR}.data.0", "got null"),
    ("forward_backward", _make_datum(dtype="bfloat16"), f"{TENSOR}.dtype", "expected one of int64, float32"),
    ("forward_backward", _make_datum(shape=[3]), "", "[3] does not hold 2 values"),
    ("forward_backward", _make_datum(shape=[-1, -2]), "", "[-1, -2] does not hold 2 values"),
    ("forward_backward", _make_datum(data=[1e300, 1], dtype="float32"), "", "target_tokens[0]"),
    ("forward_backward", _make_datum(data=[1.5, 2]), "", "target_tokens[0]"),
    ("optim_step", {"model_id": "m", "adam_params": {"lr": 1}}, "adam_params.lr", "unknown field"),
    ("optim_step", {"model_id": "m"}, "adam_params", "required"),
    ("save_weights", {"model_id": "m", "path": 5}, "path", "expected string or null, got 5"),
    ("load_weights", {"model_id": "m", "path": "tinker://m/weights/a"}, "optimizer", "required"),
    ("asample", {**SAMPLE, "prompt": {"chunks": [{"tokens": ["a"]}]}}, "prompt.chunks.0.tokens.0", "integer"),
    ("asample", {**SAMPLE, "prompt": {"chunks": [{"tokns": [1]}]}}, "prompt.chunks.0.tokns", "unknown field"),
    (
        "asample",
        {**SAMPLE, "prompt": {"chunks": [{"type": "image", "data": "", "format": "gif"}]}},
        "prompt.chunks.0.format",
        "expected one of png, jpeg",
    ),
    ("asample", {**SAMPLE, "sampling_params": {"stop": 3}}, "sampling_params.stop", "expected string or array or null"),
    ("asample", {**SAMPLE, "num_samples": 0}, "num_samples", "must be 1 to 1024, got 0"),
    ("asample", {"prompt": TEXT, "sampling_params": {}}, "sampling_session_id", "pass one of"),
    ("retrieve_future", {}, "request_id", "required"),
    ("weights_info", {"tinker_path": "tinker://a"}, "tinker_path", "RUN/weights/NAME"),
    ("telemetry", {"events": [{"event": "SESSION_END"}]}, "events.0.duration", "required"),
]


@pytest.mark.parametrize(("path", "body", "field", "reason"), BAD_BODIES)
def test_invalid_body_is_422_with_field_and_reason(call: Caller, path: str, body: Any, field: str, reason: str) -> None:
    """One of the items names the field from the outside in, and describes the problem."""
    reply = call.post(path, body)
    assert reply.status == 422
    reasons = {".".join(map(str, item["loc"][1:])): item["msg"] for item in reply.body["detail"]}
    assert all(item["loc"][0] == "body" and item["type"] for item in reply.body["detail"])
    assert any((not field or place == field) and reason in text for place, text in reasons.items()), reasons


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"nul", b'{"a":1}x'])
def test_invalid_json_is_422(call: Caller, content: bytes) -> None:
    """An unreadable body has one error for the whole body."""
    reply = call.post("create_session", content)
    assert (reply.status, reply.body["detail"][0]["loc"][0]) == (422, "body")


def test_unsupported_media_type_is_415(call: Caller) -> None:
    """Versions before protobuf reject it; the error names the accepted type."""
    reply = call.post("forward_backward", b"\x08", headers={"content-type": "application/x-protobuf"})
    assert reply.status == 415
    assert "application/json" in reply.body["detail"]


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("training_runs", [("limit", "many")], "limit"),
        ("training_runs", [("limit", "-1")], "limit"),
        ("checkpoints", [("offset", "-1")], "offset"),
        ("checkpoints", [("offset", "9" * 19)], "offset"),
        ("sessions", [("access_scope", "all")], "access_scope"),
        ("sessions", [("page", "1")], "page"),
    ],
)
def test_invalid_query_parameter_is_422(call: Caller, path: str, query: list[tuple[str, str]], field: str) -> None:
    """Query parameters are validated like bodies."""
    reply = call("GET", path, query=query)
    assert reply.status == 422
    assert reply.body["detail"][0]["loc"] == ["query", field]


def test_long_list_of_errors_is_truncated(call: Caller) -> None:
    """A thousand wrong numbers give fewer items, and a long value is truncated in the response."""
    reply = call.post("create_session", {**SESSION, "tags": list(range(1000)), "sdk_version": ["x" * 5000]})
    assert len(reply.body["detail"]) == 20
    assert all(len(item["msg"]) < 400 for item in reply.body["detail"])


def test_wire_version_decides_about_a_field(serve: ServerFactory) -> None:
    """A version before the field rejects it, and a version with the field accepts it."""
    body = {"model_id": "m", "adam_params": {"weight_decay": 0.1}}
    assert serve(wire_version="0.6.3").post("optim_step", body).status == 422
    assert serve(wire_version="0.7.0").post("optim_step", body).status == 404
    with pytest.raises(ValueError, match=r"0\.2\.0"):
        serve(wire_version="0.2.0")
