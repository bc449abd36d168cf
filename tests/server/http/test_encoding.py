"""Tests of responses and results in the form of each wire version."""

from __future__ import annotations

from datetime import datetime, timezone

import numpy as np
import orjson
import pytest

from support.server_fixtures import BatchFactory, Caller, ServerFactory
from tinkerwire._server.http.encoding import ResultEncoder
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._wire.protobuf import decode_output, decode_sample
from tinkerwire_base.call import PROTOBUF
from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_generated import models as m

NANO = "tinkerwire/byte-nano"


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        ("0.3.0", set()),
        ("0.4.0", {"size_bytes", "public"}),
        ("0.9.0", {"size_bytes", "public", "expires_at"}),
        ("0.26.2", {"size_bytes", "public", "expires_at", "user_metadata"}),
    ],
)
def test_field_is_sent_from_its_first_version_on(version: str, keys: set[str]) -> None:
    """This also holds inside lists; every response has the fields of the first version."""
    now = datetime.now(timezone.utc)
    checkpoint = m.Checkpoint(
        checkpoint_id="weights/a",
        checkpoint_type="training",
        time=now,
        tinker_path="tinker://r/weights/a",
        size_bytes=1,
        public=True,
        expires_at=now,
        user_metadata={"a": "b"},
    )
    sent = orjson.loads(ResultEncoder(version).encode_json(m.CheckpointsListResponse(checkpoints=[checkpoint])))
    required_fields = {"checkpoint_id", "checkpoint_type", "time", "tinker_path"}
    assert set(sent["checkpoints"][0]) == required_fields | keys


def _list_fields(version: str, model: str) -> set[str]:
    return set(load_contract(version)["components"]["schemas"][model]["properties"])


@pytest.mark.parametrize("version", ["0.3.0", "0.6.3", "0.16.1", "0.25.0", "0.38.0"])
def test_responses_lack_fields_of_other_versions(serve: ServerFactory, version: str) -> None:
    """The responses are futures, infos, capabilities and sessions of a real server."""
    call = serve(wire_version=version)
    model_id = call.create_model()
    session = {"session_id": model_id.partition(":")[0], "sampling_session_seq_id": 0, "base_model": NANO}
    sampler_id = call.post("create_sampling_session", session).body["sampling_session_id"]
    body = {
        "sampling_session_id": sampler_id,
        "prompt": {"chunks": [{"tokens": [1]}]},
        "sampling_params": {"max_tokens": 1},
        "seq_id": 0,
    }
    future = call.post("asample", body).body
    assert future.keys() <= _list_fields(version, "UntypedAPIFuture")
    assert ("sample_sequence_ids" in future) == (version == "0.38.0")
    info = call.post("get_info", {"model_id": model_id}).body
    assert info.keys() <= _list_fields(version, "GetInfoResponse")
    assert ("optimizer_config" in info) == (version == "0.38.0")
    models = call("GET", "get_server_capabilities").body["supported_models"]
    assert models[0].keys() <= _list_fields(version, "SupportedModel")


def _make_loss_request(call: Caller, batch: BatchFactory, version: str) -> str:
    model_id = call.create_model()
    body = {"model_id": model_id, "forward_backward_input": batch()}
    has_json = parse_version(version) < parse_version("0.25.0")
    reply = call.post("forward_backward", body) if has_json else call.post_protobuf(model_id)
    request_id: str = reply.body["request_id"]
    return request_id


@pytest.mark.parametrize(
    ("version", "accept", "media"),
    [
        ("0.16.1", "application/x-protobuf", "application/json"),
        ("0.18.2", "application/x-protobuf", "application/json"),
        ("0.19.0", "application/x-protobuf", "application/x-protobuf"),
        ("0.24.1", "application/json", "application/json"),
        ("0.24.1", "*/*", "application/json"),
        ("0.24.1", "application/x-protobuf, application/json", "application/x-protobuf"),
        ("0.25.0", "application/json", "application/json"),
        ("0.25.0", "*/*", "application/x-protobuf"),
        ("0.38.0", "application/x-protobuf", "application/x-protobuf"),
    ],
)
def test_accept_selects_an_encoding_of_the_version(
    serve: ServerFactory, batch: BatchFactory, version: str, accept: str, media: str
) -> None:
    """The loss is the same in both forms."""
    call = serve(wire_version=version)
    request_id = _make_loss_request(call, batch, version)
    reply = call.post("retrieve_future", {"request_id": request_id}, headers={"accept": accept})
    assert reply.headers["content-type"] == media
    if media == PROTOBUF:
        result = decode_output(reply.body)
        loss, logprobs = result.metrics["loss:sum"], result.loss_fn_outputs[0]["logprobs"].to_numpy()
    else:
        output = reply.body["loss_fn_outputs"][0]
        loss, logprobs = reply.body["metrics"]["loss:sum"], output["logprobs"]["data"]
        assert output["logprobs"].keys() == {"data", "dtype", "shape"}
    assert loss == pytest.approx(-sum(logprobs), rel=1e-5)


def test_failures_and_other_results_are_json(serve: ServerFactory) -> None:
    """Regardless of Accept, only two results have a protobuf form."""
    call = serve(wire_version="0.38.0")
    body = {"model_id": call.create_model(), "path": "tinker://x/weights/y", "optimizer": False}
    assert "unknown checkpoint" in call.run("load_weights", body)["error"]


def test_sample_is_equal_in_json_and_protobuf(serve: ServerFactory) -> None:
    """The JSON form omits the fields that only protobuf has."""
    call = serve(wire_version="0.38.0", seed=1)
    body = {
        "base_model": NANO,
        "prompt": {"chunks": [{"tokens": [1, 2, 3]}]},
        "sampling_params": {"max_tokens": 3},
        "prompt_logprobs": True,
        "topk_prompt_logprobs": 2,
        "topk_sample_logprobs": 2,
        "target_prompt_logprobs": {"data": [2, -1, 3, 9], "dtype": "int64", "shape": [2, 2]},
    }
    request_id = call.submit("asample", body)
    binary = decode_sample(call.result(request_id))
    json_body = call.post("retrieve_future", {"request_id": request_id}, headers={"accept": "application/json"}).body
    assert json_body["sequences"][0].keys() == {"stop_reason", "tokens", "logprobs"}
    assert json_body["sequences"][0]["tokens"] == binary.sequences[0].tokens
    assert json_body["prompt_logprobs"] == pytest.approx(binary.prompt_logprobs)
    assert len(binary.sequences[0].topk_logprobs) == 3
    target = binary.target_prompt_logprobs.to_numpy()
    assert target[:, 0] == pytest.approx(binary.prompt_logprobs[1:])
    assert np.isnan(target[0, 1]) and target[1, 1] < 0


def test_large_result_is_announced_by_its_size(serve: ServerFactory) -> None:
    """The client must allow it; the next poll returns the result."""
    call = serve(wire_version="0.38.0", max_inline_bytes=10)
    request_id = call.post_protobuf(call.create_model()).body["request_id"]
    poll = {"request_id": request_id, "allow_metadata_only": True}
    metadata = call.post("retrieve_future", poll, headers={"accept": PROTOBUF}).body
    content = call.result(request_id)
    assert metadata == {"status": "complete_metadata", "response_payload_size": len(content)}
