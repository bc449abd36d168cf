"""Mistakes of hand-written clients in requests, each in its exact wire form."""

from __future__ import annotations

from typing import Any

import pytest

from support.wire_forms import NEWEST, is_valid_body, project_contract, read_schema, without

PROMPT = {"chunks": [{"tokens": [1, 2]}]}
WEIGHTS_REQUESTS: dict[str, dict[str, Any]] = {
    "SaveWeightsRequest": {"model_id": "m", "path": "a", "seq_id": 4},
    "SaveWeightsForSamplerRequest": {"model_id": "m", "path": "a", "seq_id": 6},
    "LoadWeightsRequest": {"model_id": "m", "path": "tinker://m/weights/a", "optimizer": False, "seq_id": 5},
}


@pytest.mark.parametrize(("name", "body"), WEIGHTS_REQUESTS.items())
def test_checkpoint_name_is_sent_as_path(name: str, body: dict[str, Any]) -> None:
    """The name of a checkpoint is in path, not in checkpoint_name or name; only loading requires it."""
    assert is_valid_body(name, body)
    assert not is_valid_body(name, without(body, "path") | {"checkpoint_name": "a"})
    assert not is_valid_body(name, without(body, "path") | {"name": "a"})
    assert is_valid_body(name, without(body, "path")) == (name != "LoadWeightsRequest")


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("SaveWeightsRequest", "save_weights"),
        ("SaveWeightsForSamplerRequest", "save_weights_for_sampler"),
        ("LoadWeightsRequest", "load_weights"),
    ],
)
def test_type_tag_is_the_endpoint_name(name: str, tag: str) -> None:
    """The type tag is the name of the endpoint; it may be omitted, but not differ."""
    body = WEIGHTS_REQUESTS[name]
    assert is_valid_body(name, body | {"type": tag})
    assert not is_valid_body(name, body | {"type": name})
    assert not is_valid_body(name, body | {"type": None})


def test_save_for_sampler_can_open_a_sampling_session() -> None:
    """Only the request for a sampler has sampling_session_seq_id, which counts from 0."""
    assert is_valid_body("SaveWeightsForSamplerRequest", {"model_id": "m", "seq_id": 6, "sampling_session_seq_id": 0})
    assert not is_valid_body("SaveWeightsRequest", {"model_id": "m", "seq_id": 6, "sampling_session_seq_id": 0})
    response = {"sampling_session_id": "s", "path": None}
    assert is_valid_body("SaveWeightsForSamplerResponseInternal", response)
    assert not is_valid_body("SaveWeightsForSamplerResponse", response)


def test_load_requires_optimizer_since_0_6_0() -> None:
    """The field optimizer is required from 0.6.0 on and rejected before."""
    body = WEIGHTS_REQUESTS["LoadWeightsRequest"]
    assert is_valid_body("LoadWeightsRequest", body, "0.6.0")
    assert not is_valid_body("LoadWeightsRequest", without(body, "optimizer"), "0.6.0")
    assert not is_valid_body("LoadWeightsRequest", body, "0.5.1")
    assert is_valid_body("LoadWeightsRequest", without(body, "optimizer"), "0.5.1")


def test_create_session_requires_tags_metadata_and_sdk_version() -> None:
    """The fields tags, user_metadata (null is enough) and sdk_version are required; the tag is create_session."""
    body: dict[str, Any] = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1", "type": "create_session"}
    assert is_valid_body("CreateSessionRequest", body)
    assert is_valid_body("CreateSessionRequest", without(body, "type") | {"user_metadata": {"a": [1]}})
    for name in ("tags", "user_metadata", "sdk_version"):
        assert not is_valid_body("CreateSessionRequest", without(body, name))
    assert not is_valid_body("CreateSessionRequest", body | {"type": "session"})
    assert not is_valid_body("CreateSessionRequest", body | {"tags": None})
    assert is_valid_body("CreateSessionRequest", body | {"project_id": None}, "0.15.0")
    assert not is_valid_body("CreateSessionRequest", body | {"project_id": None}, "0.14.0")


def test_create_sampling_session_requires_a_session() -> None:
    """The fields session_id and sampling_session_seq_id are required; user_metadata does not exist."""
    body = {"session_id": "s", "sampling_session_seq_id": 0, "base_model": "b", "model_path": None}
    assert is_valid_body("CreateSamplingSessionRequest", body)
    assert is_valid_body("CreateSamplingSessionRequest", body | {"type": "create_sampling_session"})
    assert not is_valid_body("CreateSamplingSessionRequest", without(body, "session_id"))
    assert not is_valid_body("CreateSamplingSessionRequest", without(body, "sampling_session_seq_id"))
    assert not is_valid_body("CreateSamplingSessionRequest", body | {"user_metadata": {}})


def test_lora_config_is_optional_but_its_rank_required() -> None:
    """A model without lora_config, or with null, is trained in full; an adapter needs a rank."""
    body = {"session_id": "s", "model_seq_id": 0, "base_model": "b"}
    assert is_valid_body("CreateModelRequest", body)
    assert is_valid_body("CreateModelRequest", body | {"lora_config": None})
    assert is_valid_body("CreateModelRequest", body | {"lora_config": {"rank": 8, "seed": None}})
    assert not is_valid_body("CreateModelRequest", body | {"lora_config": {}})
    assert not is_valid_body("CreateModelRequest", body | {"lora_config": {"rank": None}})
    assert not is_valid_body("CreateModelRequest", body | {"lora_config": {"rank": 8, "alpha": 16}})


@pytest.mark.parametrize(
    ("value", "is_valid"), [(True, True), (False, True), (None, True), (1, False), ("true", False)]
)
def test_requested_prompt_logprobs_has_three_values(value: Any, is_valid: bool) -> None:
    """The values true, false and null differ; null is the default."""
    body = {"prompt": PROMPT, "sampling_params": {}}
    assert is_valid_body("SampleRequest", body)
    assert is_valid_body("SampleRequest", body | {"prompt_logprobs": value}) is is_valid
    assert read_schema("SampleRequest")["properties"]["prompt_logprobs"]["default"] is None


@pytest.mark.parametrize("stop", [None, "\n", ["a", "b"], [], [13, 198]])
def test_stop_is_a_string_strings_or_token_ids(stop: Any) -> None:
    """Null and three forms are valid; a mixture, a single token id or lists of lists are not."""
    assert is_valid_body("SamplingParams", {"stop": stop})
    for invalid_stop in (13, ["a", 13], [[13]]):
        assert not is_valid_body("SamplingParams", {"stop": invalid_stop})


def test_telemetry_has_four_required_fields() -> None:
    """The fields events, platform, sdk_version and session_id are required; others are rejected."""
    event = {
        "event": "GENERIC_EVENT",
        "event_id": "e",
        "event_session_index": 0,
        "severity": "INFO",
        "timestamp": "2025-10-01T12:00:00Z",
        "event_name": "n",
    }
    body = {"events": [event], "platform": "Linux", "sdk_version": "0.16.1", "session_id": "s"}
    assert is_valid_body("TelemetrySendRequest", body)
    for name in body:
        assert not is_valid_body("TelemetrySendRequest", without(body, name))
    assert not is_valid_body("TelemetrySendRequest", body | {"process_uuid": "u"})
    assert not is_valid_body("TelemetrySendRequest", body | {"events": [without(event, "event_name")]})
    assert not is_valid_body("TelemetrySendRequest", body | {"events": [event | {"event": "generic_event"}]})


def test_adam_has_weight_decay_and_clipping_since_0_7_0() -> None:
    """The defaults are 1e-4, 0.9, 0.95 and 1e-12; decay and clipping, both off, came with 0.7.0."""
    defaults = {name: detail["default"] for name, detail in read_schema("AdamParams", "0.6.3")["properties"].items()}
    assert defaults == {"learning_rate": 1e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-12}
    later = {name: detail["default"] for name, detail in read_schema("AdamParams", "0.7.0")["properties"].items()}
    assert later == {**defaults, "weight_decay": 0.0, "grad_clip_norm": 0.0}
    assert is_valid_body("AdamParams", {})
    for unknown_name in ("lr", "betas", "epsilon", "beta_1"):
        assert not is_valid_body("AdamParams", {unknown_name: 0.1})


def test_image_chunk_holds_data_or_location_since_0_6_0() -> None:
    """A chunk has base64 bytes under data, or a location; both have a format, and optionally expected_tokens."""
    sent = {"data": "iVBORw0KGgo=", "format": "png", "type": "image"}
    stored = {"location": "https://example.com/a.jpg", "format": "jpeg", "type": "image_asset_pointer"}
    assert read_schema("ImageChunk")["properties"]["data"]["contentEncoding"] == "base64"
    for name, body in (("ImageChunk", sent), ("ImageAssetPointerChunk", stored)):
        for chunk in (body, body | {"expected_tokens": 64}, body | {"expected_tokens": None}, without(body, "type")):
            assert is_valid_body(name, chunk)
            assert is_valid_body("ModelInputChunk", chunk)
        assert not is_valid_body(name, without(body, "format"))
        assert not is_valid_body(name, body | {"format": "gif"})
        assert not is_valid_body(name, body | {"height": 8, "width": 8, "tokens": 64})
    assert not is_valid_body("ImageChunk", without(sent, "data") | {"image_data": "iVBORw0KGgo="})
    assert not is_valid_body(
        "ImageAssetPointerChunk", without(stored, "location") | {"url": "https://example.com/a.jpg"}
    )


def test_image_chunk_requires_its_size_before_0_6_0() -> None:
    """The fields height, width and tokens were required then, and expected_tokens was rejected."""
    body = {"data": "iVBORw0KGgo=", "format": "png"}
    size = {"height": 8, "width": 8, "tokens": 64}
    assert is_valid_body("ImageChunk", body | size, "0.5.1")
    assert not is_valid_body("ImageChunk", body, "0.5.1")
    assert not is_valid_body("ImageChunk", body | size | {"expected_tokens": 64}, "0.5.1")
    pointer = {"location": "l", "format": "png"}
    assert is_valid_body("ImageAssetPointerChunk", pointer | size, "0.5.1")
    assert not is_valid_body("ImageAssetPointerChunk", pointer, "0.5.1")


def test_text_chunk_needs_no_tag() -> None:
    """Clients of these versions send {tokens: [...]}; a tag must be the right one."""
    assert is_valid_body("ModelInput", PROMPT)
    assert is_valid_body("ModelInput", {"chunks": [{"tokens": [1], "type": "encoded_text"}]})
    assert not is_valid_body("ModelInput", {"chunks": [{"tokens": [1], "type": "text"}]})
    assert not is_valid_body("ModelInput", {"chunks": [{"tokens": [1.5]}]})
    assert not is_valid_body("ModelInput", {"chunks": [[1, 2]]})


def test_cispo_and_dro_exist_since_0_6_0() -> None:
    """The losses cispo and dro came with 0.6.0."""
    first = ["cross_entropy", "importance_sampling", "ppo"]
    assert read_schema("LossFnType", "0.5.1")["enum"] == first
    assert read_schema("LossFnType", "0.6.0")["enum"] == [*first, "cispo", "dro"]
    body = {"data": [], "loss_fn": "dro"}
    assert is_valid_body("ForwardBackwardInput", body, "0.6.0")
    assert not is_valid_body("ForwardBackwardInput", body, "0.5.1")
    assert not is_valid_body("ForwardBackwardInput", body | {"loss_fn": "dpo"})


def test_shape_may_be_null() -> None:
    """A tensor with shape null or without shape is one-dimensional; an empty shape means a single number."""
    body = {"data": [1, 2], "dtype": "int64"}
    assert read_schema("TensorData")["properties"]["shape"]["default"] is None
    for shape in (None, [2], [1, 2], []):
        assert is_valid_body("TensorData", body | {"shape": shape})
    assert is_valid_body("TensorData", body)
    assert not is_valid_body("TensorData", body | {"shape": 2})
    assert not is_valid_body("TensorData", body | {"dtype": "float64"})
    assert not is_valid_body("TensorData", body | {"data": [[1, 2]]})


def test_null_ttl_keeps_a_checkpoint() -> None:
    """The value null of ttl_seconds has a meaning, and the field is required."""
    assert is_valid_body("SetCheckpointTtlRequest", {"ttl_seconds": 3600})
    assert is_valid_body("SetCheckpointTtlRequest", {"ttl_seconds": None})
    assert not is_valid_body("SetCheckpointTtlRequest", {})


def test_requests_reject_unknown_keys_and_responses_accept_them() -> None:
    """All request bodies are strict, except SamplingParams and the contents of telemetry events."""
    for path, item in project_contract(NEWEST)["paths"].items():
        for operation in item.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body:
                name = body["$ref"].rpartition("/")[2]
                assert read_schema(name)["additionalProperties"] is False, path
    assert is_valid_body("SamplingParams", {"temperature": 0.5, "min_p": 0.1})
    assert is_valid_body("HealthResponse", {"status": "ok", "version": 3})
