"""Tests of requests against the contract of each wire version: too new, too old, or of another media type."""

from __future__ import annotations

import random
from typing import Any

import pytest
import zstandard

from support.server_fixtures import BatchFactory, ServerFactory
from tinkerwire._wire.protobuf import encode_request
from tinkerwire_base.call import PROTOBUF
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated import models as m

NANO = "tinkerwire/byte-nano"
TEXT = {"chunks": [{"tokens": [1, 2]}]}
SESSION = {"tags": [], "user_metadata": None, "sdk_version": "x"}
MODEL = {"session_id": "s", "model_seq_id": 0, "base_model": NANO}
SAMPLE = {"prompt": TEXT, "sampling_params": {}, "base_model": NANO}
SPARSE = {"data": [1], "dtype": "int64", "shape": [1, 2], "sparse_crow_indices": [0, 1], "sparse_col_indices": [0]}
IMAGE = {"data": "AA==", "format": "png", "type": "image"}
OLD_IMAGE = {**IMAGE, "height": 1, "width": 1, "tokens": 1}


def _make_training_request(loss_fn: str = "cross_entropy", config: Any = None, tensor: Any = None) -> dict[str, Any]:
    datum = {"model_input": TEXT, "loss_fn_inputs": {"target_tokens": tensor or {"data": [1, 2], "dtype": "int64"}}}
    training_input = {"data": [datum], "loss_fn": loss_fn, "loss_fn_config": config}
    return {"model_id": "m", "forward_backward_input": training_input}


def _make_sample_request(chunk: Any) -> dict[str, Any]:
    return {**SAMPLE, "prompt": {"chunks": [chunk]}}


CHANGES: list[tuple[str, Any, str, str]] = [
    ("create_session", {**SESSION, "project_id": "p"}, "0.14.0", "0.15.0"),
    ("create_session", {**SESSION, "display_name": "p"}, "0.33.1", "0.34.0"),
    ("create_model", {**MODEL, "optimizer_config": {"type": "adamw"}}, "0.28.1", "0.29.1"),
    ("forward_backward", _make_training_request("cispo"), "0.4.1", "0.6.0"),
    ("forward_backward", _make_training_request(tensor=SPARSE), "0.16.1", "0.18.2"),
    ("optim_step", {"model_id": "m", "adam_params": {"weight_decay": 0.1}}, "0.6.3", "0.7.0"),
    ("save_weights", {"model_id": "m", "ttl_seconds": 5}, "0.8.1", "0.9.0"),
    ("save_weights", {"model_id": "m", "overwrite": True}, "0.19.0", "0.20.0"),
    ("save_weights", {"model_id": "m", "user_metadata": {}}, "0.26.2", "0.27.2"),
    ("save_weights_for_sampler", {"model_id": "m", "kind": "snapshot"}, "0.36.0", "0.38.0"),
    ("load_weights", {"model_id": "m", "path": "tinker://m/weights/a", "optimizer": True}, "0.4.1", "0.6.0"),
    ("retrieve_future", {"request_id": "f", "allow_metadata_only": True}, "0.13.1", "0.14.0"),
    ("asample", {**SAMPLE, "topk_sample_logprobs": 1}, "0.28.1", "0.29.1"),
    ("asample", {**SAMPLE, "prompt_logprobs_last_n": 1, "prompt_logprobs": True}, "0.31.0", "0.33.1"),
    ("asample", _make_sample_request({"dmel": "AA==", "type": "dmel"}), "0.22.7", "0.23.4"),
    ("asample", _make_sample_request({**IMAGE, "expected_tokens": 1}), "0.4.1", "0.6.0"),
]


@pytest.mark.parametrize(("path", "body", "before", "since"), CHANGES)
def test_field_newer_than_the_version_is_422(
    serve: ServerFactory, path: str, body: Any, before: str, since: str
) -> None:
    """The version before lacks the field; the version with the field passes it to the handler."""
    rejection = serve(wire_version=before).post(path, body)
    assert rejection.status == 422, rejection
    assert rejection.body["detail"][0]["loc"][0] == "body"
    assert serve(wire_version=since).post(path, body).status in (200, 404)


@pytest.mark.parametrize(
    ("path", "body", "older", "newer"),
    [
        ("load_weights", {"model_id": "m", "path": "tinker://m/weights/a"}, "0.4.1", "0.6.0"),
        ("asample", _make_sample_request(OLD_IMAGE), "0.4.1", "0.6.0"),
    ],
)
def test_field_older_than_the_version_is_422(
    serve: ServerFactory, path: str, body: Any, older: str, newer: str
) -> None:
    """The field is removed, or has become required."""
    assert serve(wire_version=older).post(path, body).status in (200, 404)
    assert serve(wire_version=newer).post(path, body).status == 422


@pytest.mark.parametrize(
    ("path", "without", "having"),
    [
        ("client/config", "0.16.1", "0.18.2"),
        ("client/dynamic_config", "0.24.1", "0.25.0"),
        ("auth/token", "0.16.1", "0.18.2"),
        ("forward", "0.25.0", "0.24.1"),
        ("unload_model", "0.26.2", "0.25.0"),
        ("weights_info", "0.5.1", "0.6.0"),
        ("retrieve_futures", "0.25.0", "0.26.2"),
        ("cancel_future", "0.25.0", "0.26.2"),
        ("copy_weights", "0.25.0", "0.26.2"),
        ("sessions/s/finish", "0.26.2", "0.27.2"),
        ("save_weights_external", "0.27.2", "0.28.1"),
        ("join_sampling_session", "0.31.0", "0.32.0"),
    ],
)
def test_operation_exists_in_its_versions_only(serve: ServerFactory, path: str, without: str, having: str) -> None:
    """In other versions it is 404; in its own, an empty object is at worst invalid."""
    rejected = serve(wire_version=without).post(path, {})
    assert (rejected.status, "is not an endpoint" in rejected.body["detail"]) == (404, True)
    available = serve(wire_version=having).post(path, {})
    assert available.status == 422 or "is not an endpoint" not in str(available.body)


@pytest.mark.parametrize(
    ("version", "json", "binary"),
    [("0.16.1", 200, 415), ("0.19.0", 200, 200), ("0.24.1", 200, 200), ("0.25.0", 415, 200), ("0.38.0", 415, 200)],
)
def test_media_type_of_the_version_is_accepted(
    serve: ServerFactory, batch: BatchFactory, version: str, json: int, binary: int
) -> None:
    """JSON is valid until 0.25.0, protobuf from 0.19.0 on; a 415 names the accepted types."""
    call = serve(wire_version=version)
    model_id = call.create_model()
    json_response = call.post("forward_backward", {"model_id": model_id, "forward_backward_input": batch()})
    request = m.ForwardBackwardRequest(
        forward_backward_input=Converter().structure(batch(), m.ForwardBackwardInput), model_id=model_id
    )
    headers = {"content-type": PROTOBUF}
    protobuf_response = call.post("forward_backward", encode_request(request, max(version, "0.19.0")), headers=headers)
    assert (json_response.status, protobuf_response.status) == (json, binary)
    for reply in (json_response, protobuf_response):
        assert reply.status == 200 or f"in wire {version}" in reply.body["detail"]


def test_only_one_operation_accepts_protobuf(serve: ServerFactory) -> None:
    """Other operations accept JSON in every version."""
    call = serve(wire_version="0.38.0")
    assert call.post("optim_step", b"\n\x01m", headers={"content-type": PROTOBUF}).status == 415


def test_zstd_is_accepted_in_its_versions_only(serve: ServerFactory, batch: BatchFactory) -> None:
    """Protobuf bodies can use zstd from 0.22.7 on; JSON bodies cannot."""
    for version, status in (("0.21.0", 415), ("0.22.7", 200), ("0.38.0", 200)):
        call = serve(wire_version=version)
        model_id = call.create_model()
        training_input = Converter().structure(batch(), m.ForwardBackwardInput)
        request = m.ForwardBackwardRequest(forward_backward_input=training_input, model_id=model_id)
        content = zstandard.compress(encode_request(request, version))
        headers = {"content-type": PROTOBUF, "content-encoding": "zstd"}
        assert call.post("forward_backward", content, headers=headers).status == status
    headers = {"content-encoding": "zstd"}
    assert call.post("optim_step", zstandard.compress(b"{}"), headers=headers).status == 415
    assert call.post("forward_backward", b"x", headers={**headers, "content-type": PROTOBUF}).status == 400


@pytest.mark.parametrize(
    ("version", "request_fields", "reason"),
    [
        ("0.33.1", {"loss_fn": "gspo"}, "'gspo' is not in wire 0.33.1"),
        ("0.25.0", {"loss_fn_config": {"beta": 0.5}}, "loss_fn_config_v2 is not in wire 0.25.0"),
    ],
)
def test_protobuf_body_is_validated_against_the_version(
    serve: ServerFactory, batch: BatchFactory, version: str, request_fields: Any, reason: str
) -> None:
    """Fields and values that the version lacks are 422, as in JSON."""
    training_input = Converter().structure({**batch(), **request_fields}, m.ForwardBackwardInput)
    content = encode_request(m.ForwardBackwardRequest(forward_backward_input=training_input, model_id="m"))
    call = serve(wire_version=version)
    rejection = call.post("forward_backward", content, headers={"content-type": PROTOBUF})
    assert rejection.status == 422
    assert reason in rejection.body["detail"][0]["msg"]
    broken = call.post("forward_backward", b"\xff\xff", headers={"content-type": PROTOBUF})
    assert broken.status == 422


def test_protobuf_forward_accumulates_no_gradients(serve: ServerFactory) -> None:
    """A step after the forward changes nothing."""
    call = serve(wire_version="0.38.0")
    model_id = call.create_model()
    before = call.protobuf_loss(model_id)
    metrics = call.run("optim_step", {"model_id": model_id, "adam_params": {"learning_rate": 0.1}})["metrics"]
    assert metrics["grad_norm:mean"] == 0
    assert call.protobuf_loss(model_id) == before
    call.result(call.post_protobuf(model_id).body["request_id"])
    call.run("optim_step", {"model_id": model_id, "adam_params": {"learning_rate": 0.01}})
    assert call.protobuf_loss(model_id) < before


def test_mutated_protobuf_body_causes_no_server_error(serve: ServerFactory, batch: BatchFactory) -> None:
    """A valid message with changed or missing bytes is rejected, succeeds, or fails as a user error."""
    call = serve(wire_version="0.38.0")
    model_id = call.create_model()
    training_input = Converter().structure(batch(), m.ForwardBackwardInput)
    valid_body = encode_request(m.ForwardBackwardRequest(forward_backward_input=training_input, model_id=model_id))
    rng = random.Random(7)
    statuses = set()
    for _ in range(400):
        content = bytearray(valid_body)
        for _ in range(rng.randint(1, 3)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        sent = bytes(content[: rng.choice([len(content), rng.randrange(len(content))])])
        reply = call.post("forward_backward", sent, headers={"content-type": PROTOBUF})
        statuses.add(reply.status)
        if reply.status == 200:
            result = call.result(reply.body["request_id"])
            assert isinstance(result, bytes) or result["category"] == "user", result
    assert statuses == {200, 404, 422}
