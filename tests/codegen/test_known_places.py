"""The places where clients and servers written by hand went wrong, each in its exact wire form."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from tinkerwire_base.projection import project
from tinkerwire_codegen.bundle import load

CONTRACT = load(Path(__file__).parents[2] / "schema")
OLDEST, NEWEST = "0.3.0", "0.16.1"
TENSOR = {"data": [0.5, 1.0], "dtype": "float32", "shape": [2]}
PROMPT = {"chunks": [{"tokens": [1, 2]}]}


@cache
def plain(version: str) -> dict[str, Any]:
    return project(CONTRACT, version)


def schema_of(name: str, version: str = NEWEST) -> dict[str, Any]:
    found: dict[str, Any] = plain(version)["components"]["schemas"][name]
    return found


def fits(name: str, body: Any, version: str = NEWEST) -> bool:
    root = {"$ref": f"#/components/schemas/{name}", "components": plain(version)["components"]}
    return bool(Draft202012Validator(root).is_valid(body))


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in names}


WEIGHTS_REQUESTS: dict[str, dict[str, Any]] = {
    "SaveWeightsRequest": {"model_id": "m", "path": "a", "seq_id": 4},
    "SaveWeightsForSamplerRequest": {"model_id": "m", "path": "a", "seq_id": 6},
    "LoadWeightsRequest": {"model_id": "m", "path": "tinker://m/weights/a", "optimizer": False, "seq_id": 5},
}


@pytest.mark.parametrize(("name", "body"), WEIGHTS_REQUESTS.items())
def test_weights_requests_say_path(name: str, body: dict[str, Any]) -> None:
    """The name of a checkpoint goes as path, not as checkpoint_name or name; only loading requires it."""
    assert fits(name, body)
    assert not fits(name, without(body, "path") | {"checkpoint_name": "a"})
    assert not fits(name, without(body, "path") | {"name": "a"})
    assert fits(name, without(body, "path")) == (name != "LoadWeightsRequest")


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("SaveWeightsRequest", "save_weights"),
        ("SaveWeightsForSamplerRequest", "save_weights_for_sampler"),
        ("LoadWeightsRequest", "load_weights"),
    ],
)
def test_weights_requests_have_their_type(name: str, tag: str) -> None:
    """The type tag is the name of the endpoint, may be left out, and may be nothing else."""
    body = WEIGHTS_REQUESTS[name]
    assert fits(name, body | {"type": tag})
    assert not fits(name, body | {"type": name})
    assert not fits(name, body | {"type": None})


def test_saving_for_a_sampler_can_open_a_sampling_session() -> None:
    """sampling_session_seq_id stands on the request for a sampler only, and counts from 0."""
    assert fits("SaveWeightsForSamplerRequest", {"model_id": "m", "seq_id": 6, "sampling_session_seq_id": 0})
    assert not fits("SaveWeightsRequest", {"model_id": "m", "seq_id": 6, "sampling_session_seq_id": 0})
    answer = {"sampling_session_id": "s", "path": None}
    assert fits("SaveWeightsForSamplerResponseInternal", answer)
    assert not fits("SaveWeightsForSamplerResponse", answer)


def test_loading_says_whether_the_optimizer_is_loaded_since_0_6_0() -> None:
    """optimizer is required from 0.6.0 on and refused before."""
    body = WEIGHTS_REQUESTS["LoadWeightsRequest"]
    assert fits("LoadWeightsRequest", body, "0.6.0")
    assert not fits("LoadWeightsRequest", without(body, "optimizer"), "0.6.0")
    assert not fits("LoadWeightsRequest", body, "0.5.1")
    assert fits("LoadWeightsRequest", without(body, "optimizer"), "0.5.1")


def test_create_session_says_tags_and_sdk_version() -> None:
    """tags, user_metadata (null counts as said) and sdk_version are required; the tag is create_session."""
    body: dict[str, Any] = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1", "type": "create_session"}
    assert fits("CreateSessionRequest", body)
    assert fits("CreateSessionRequest", without(body, "type") | {"user_metadata": {"a": [1]}})
    for name in ("tags", "user_metadata", "sdk_version"):
        assert not fits("CreateSessionRequest", without(body, name))
    assert not fits("CreateSessionRequest", body | {"type": "session"})
    assert not fits("CreateSessionRequest", body | {"tags": None})
    assert fits("CreateSessionRequest", body | {"project_id": None}, "0.15.0")
    assert not fits("CreateSessionRequest", body | {"project_id": None}, "0.14.0")


def test_create_sampling_session_belongs_to_a_session() -> None:
    """session_id and sampling_session_seq_id are required, and there is no user_metadata."""
    body = {"session_id": "s", "sampling_session_seq_id": 0, "base_model": "b", "model_path": None}
    assert fits("CreateSamplingSessionRequest", body)
    assert fits("CreateSamplingSessionRequest", body | {"type": "create_sampling_session"})
    assert not fits("CreateSamplingSessionRequest", without(body, "session_id"))
    assert not fits("CreateSamplingSessionRequest", without(body, "sampling_session_seq_id"))
    assert not fits("CreateSamplingSessionRequest", body | {"user_metadata": {}})


def test_lora_config_is_optional_and_its_rank_is_not() -> None:
    """A model without lora_config, or with null, is trained whole; an adapter has a rank."""
    body = {"session_id": "s", "model_seq_id": 0, "base_model": "b"}
    assert fits("CreateModelRequest", body)
    assert fits("CreateModelRequest", body | {"lora_config": None})
    assert fits("CreateModelRequest", body | {"lora_config": {"rank": 8, "seed": None}})
    assert not fits("CreateModelRequest", body | {"lora_config": {}})
    assert not fits("CreateModelRequest", body | {"lora_config": {"rank": None}})
    assert not fits("CreateModelRequest", body | {"lora_config": {"rank": 8, "alpha": 16}})


def test_optim_step_gives_metrics_and_no_success() -> None:
    """The result is a map of numbers by name, which may be null or left out."""
    assert list(schema_of("OptimStepResponse")["properties"]) == ["metrics"]
    assert fits("OptimStepResponse", {"metrics": {"grad_norm:mean": 0.5}})
    assert fits("OptimStepResponse", {"metrics": None})
    assert fits("OptimStepResponse", {})
    assert not fits("OptimStepResponse", {"metrics": {"note": "good"}})


def members(version: str) -> set[str]:
    return {m["$ref"].rpartition("/")[2] for m in schema_of("FutureRetrieveResponse", version)["anyOf"]}


RESULTS = {
    *("CreateModelResponse", "UnloadModelResponse", "ForwardBackwardOutput", "OptimStepResponse"),
    *("SaveWeightsResponse", "SaveWeightsForSamplerResponse", "SaveWeightsForSamplerResponseInternal"),
    *("LoadWeightsResponse", "SampleResponse"),
}


def test_results_of_futures_are_the_real_result_types() -> None:
    """A 200 of retrieve_future is a result itself, a failure or a wait; since 0.14.0 also its size alone."""
    assert members(OLDEST) == RESULTS | {"TryAgainResponse", "RequestFailedResponse"}
    assert members("0.13.1") == members(OLDEST)
    assert members("0.14.0") == members(OLDEST) | {"CompleteMetadataResponse"}
    for answer in (
        {"model_id": "m"},
        {"sequences": [{"stop_reason": "stop", "tokens": [1]}]},
        {"type": "try_again", "request_id": "r", "queue_state": "active"},
        {"error": "out of memory", "category": "server"},
        {"status": "complete_metadata", "response_payload_size": 1024},
    ):
        assert fits("FutureRetrieveResponse", answer)
    assert not fits("FutureRetrieveResponse", [])


def test_no_status_wraps_the_result_of_a_future() -> None:
    """No answer has result or response_data; status is only on the answer that gives the size."""
    for name in members(NEWEST):
        fields = schema_of(name).get("properties", {})
        assert not {"result", "response", "response_data", "data"} & fields.keys(), name
        assert ("status" in fields) == (name == "CompleteMetadataResponse"), name
    assert fits("CompleteMetadataResponse", {"status": "complete_metadata", "response_payload_size": 0})
    assert not fits("CompleteMetadataResponse", {"status": "completed", "response_payload_size": 0})
    assert not fits("CompleteMetadataResponse", {"status": "complete_metadata"})


def test_try_again_says_why() -> None:
    """queue_state is required and open for new values; the reason in words came with 0.7.0."""
    body = {"request_id": "r", "queue_state": "paused_capacity"}
    assert fits("TryAgainResponse", body)
    assert fits("TryAgainResponse", body | {"queue_state": "paused_for_lunch"})
    assert not fits("TryAgainResponse", without(body, "queue_state"))
    assert fits("TryAgainResponse", body | {"queue_state_reason": "no machines"})
    assert not fits("TryAgainResponse", body | {"queue_state_reason": 3})
    assert "queue_state_reason" in schema_of("TryAgainResponse", "0.7.0")["properties"]
    assert "queue_state_reason" not in schema_of("TryAgainResponse", "0.6.3")["properties"]


@pytest.mark.parametrize(
    ("value", "good"),
    [
        (None, True),
        ([], True),
        ([None, [[1, -0.5], [7, -2]], []], True),
        ([[1, -0.5]], False),
        ([[[1, -0.5, 0]]], False),
        ([[[1]]], False),
        ([[[0.5, -0.5]]], False),
        ([[{"token": 1, "logprob": -0.5}]], False),
        ([[[1, None]]], False),
    ],
)
def test_topk_prompt_logprobs_are_pairs_by_place(value: Any, good: bool) -> None:
    """A list with one entry per place of the prompt: null, or a list of pairs [token, logprob]."""
    assert fits("SampleResponse", {"sequences": [], "topk_prompt_logprobs": value}) is good


@pytest.mark.parametrize(("value", "good"), [(True, True), (False, True), (None, True), (1, False), ("true", False)])
def test_prompt_logprobs_of_a_request_has_three_values(value: Any, good: bool) -> None:
    """true, false and null are different, and null, the default, is neither."""
    body = {"prompt": PROMPT, "sampling_params": {}}
    assert fits("SampleRequest", body)
    assert fits("SampleRequest", body | {"prompt_logprobs": value}) is good
    assert schema_of("SampleRequest")["properties"]["prompt_logprobs"]["default"] is None


@pytest.mark.parametrize("stop", [None, "\n", ["a", "b"], [], [13, 198]])
def test_stop_is_a_string_strings_or_token_ids(stop: Any) -> None:
    """Three forms and null; a mixture, a single token id and lists of lists are none of them."""
    assert fits("SamplingParams", {"stop": stop})
    for bad in (13, ["a", 13], [[13]]):
        assert not fits("SamplingParams", {"stop": bad})


def test_stop_reason_survives_a_new_value() -> None:
    """The reasons are length and stop, and a server may add one."""
    assert schema_of("StopReason")["enum"] == ["length", "stop"]
    for reason in ("length", "stop", "content_filter"):
        assert fits("SampledSequence", {"stop_reason": reason, "tokens": []})
    assert not fits("SampledSequence", {"stop_reason": None, "tokens": []})
    assert not fits("SampledSequence", {"tokens": []})


def test_archive_addresses_expire() -> None:
    """The address comes as a redirect with Location and Expires, and becomes url and expires, both required."""
    assert schema_of("CheckpointArchiveUrlResponse")["required"] == ["url", "expires"]
    path = "/api/v1/training_runs/{training_run_id}/checkpoints/{checkpoint_id}/archive"
    answers = plain(NEWEST)["paths"][path]["get"]["responses"]
    assert list(answers["302"]["headers"]) == ["Location", "Expires"]
    assert "200" not in answers


def test_supported_models_are_open_objects() -> None:
    """A model of the server is an object whose other keys are kept, never a string."""
    assert fits("GetServerCapabilitiesResponse", {"supported_models": [{"model_name": "b", "context": 32768}]})
    assert fits("GetServerCapabilitiesResponse", {"supported_models": [{}]})
    assert not fits("GetServerCapabilitiesResponse", {"supported_models": ["b"]})
    assert schema_of("SupportedModel").get("additionalProperties", True) is True


MOMENTS = {
    "Checkpoint": ("time", "expires_at"),
    "CheckpointArchiveUrlResponse": ("expires",),
    "TrainingRun": ("last_request_time",),
    "SessionStartEvent": ("timestamp",),
    "SessionEndEvent": ("timestamp",),
    "UnhandledExceptionEvent": ("timestamp",),
    "GenericEvent": ("timestamp",),
}


@pytest.mark.parametrize(("name", "fields"), MOMENTS.items())
def test_moments_carry_their_zone(name: str, fields: tuple[str, ...]) -> None:
    """Every moment is an RFC 3339 text with Z or an offset; a naive one is no moment, nor is a number."""
    for field in fields:
        check = jsonschema_rs.validator_for(schema_of(name)["properties"][field], validate_formats=True)
        assert check.is_valid("2025-10-01T12:00:00.5Z")
        assert check.is_valid("2025-10-01T14:00:00+02:00")
        assert not check.is_valid("2025-10-01T12:00:00")
        assert not check.is_valid(1759320000)


def test_telemetry_has_four_fields() -> None:
    """events, platform, sdk_version and session_id, all required, and none besides."""
    event = {
        "event": "GENERIC_EVENT",
        "event_id": "e",
        "event_session_index": 0,
        "severity": "INFO",
        "timestamp": "2025-10-01T12:00:00Z",
        "event_name": "n",
    }
    body = {"events": [event], "platform": "Linux", "sdk_version": "0.16.1", "session_id": "s"}
    assert fits("TelemetrySendRequest", body)
    for name in body:
        assert not fits("TelemetrySendRequest", without(body, name))
    assert not fits("TelemetrySendRequest", body | {"process_uuid": "u"})
    assert not fits("TelemetrySendRequest", body | {"events": [without(event, "event_name")]})
    assert not fits("TelemetrySendRequest", body | {"events": [event | {"event": "generic_event"}]})


def test_cursors_are_typed_everywhere() -> None:
    """Each cursor is offset, limit and total_count; lists of runs always have one, of checkpoints since 0.4.0."""
    cursor = {"offset": 0, "limit": 20, "total_count": 1}
    assert fits("TrainingRunsResponse", {"training_runs": [], "cursor": cursor})
    assert not fits("TrainingRunsResponse", {"training_runs": []})
    assert not fits("TrainingRunsResponse", {"training_runs": [], "cursor": None})
    assert fits("CheckpointsListResponse", {"checkpoints": [], "cursor": cursor})
    assert fits("CheckpointsListResponse", {"checkpoints": [], "cursor": None})
    assert "cursor" not in schema_of("CheckpointsListResponse", OLDEST)["properties"]
    for name in cursor:
        bad = without(cursor, name)
        assert not fits("TrainingRunsResponse", {"training_runs": [], "cursor": bad})
        assert not fits("CheckpointsListResponse", {"checkpoints": [], "cursor": bad})


def test_outputs_of_losses_are_maps_of_tensors() -> None:
    """loss_fn_outputs has one map per datum, from names to tensors with data and dtype."""
    body = {"loss_fn_output_type": "scalar", "metrics": {"loss:sum": 1.5}}
    assert fits("ForwardBackwardOutput", body | {"loss_fn_outputs": [{"logprobs": TENSOR}, {}]})
    assert not fits("ForwardBackwardOutput", body | {"loss_fn_outputs": [{"logprobs": [0.5]}]})
    assert not fits("ForwardBackwardOutput", body | {"loss_fn_outputs": [TENSOR]})
    assert not fits("ForwardBackwardOutput", body | {"loss_fn_outputs": {"logprobs": TENSOR}})


def test_the_loss_is_a_metric() -> None:
    """ForwardBackwardOutput has three fields, all required, and no loss among them."""
    schema = schema_of("ForwardBackwardOutput")
    assert list(schema["properties"]) == ["loss_fn_output_type", "loss_fn_outputs", "metrics"]
    assert schema["required"] == list(schema["properties"])


def test_categories_of_errors_are_three() -> None:
    """unknown, server and user, in lower case; another word passes, for the reader to make of it what it can."""
    assert schema_of("RequestErrorCategory")["enum"] == ["unknown", "server", "user"]
    for category in ("unknown", "server", "user", "User", "quota"):
        assert fits("RequestFailedResponse", {"error": "e", "category": category})
    assert not fits("RequestFailedResponse", {"error": "e", "category": None})
    assert not fits("RequestFailedResponse", {"category": "user"})


def test_defaults_of_adam() -> None:
    """Step size 1e-4, beta1 0.9, beta2 0.95, eps 1e-12; decay and clipping, both off, came with 0.7.0."""
    defaults = {name: detail["default"] for name, detail in schema_of("AdamParams", "0.6.3")["properties"].items()}
    assert defaults == {"learning_rate": 1e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-12}
    later = {name: detail["default"] for name, detail in schema_of("AdamParams", "0.7.0")["properties"].items()}
    assert later == {**defaults, "weight_decay": 0.0, "grad_clip_norm": 0.0}
    assert fits("AdamParams", {})
    for wrong in ("lr", "betas", "epsilon", "beta_1"):
        assert not fits("AdamParams", {wrong: 0.1})


def test_image_chunks_since_0_6_0() -> None:
    """Bytes in base64 under data, or a location; both with a format, and with expected_tokens if wanted."""
    sent = {"data": "iVBORw0KGgo=", "format": "png", "type": "image"}
    stored = {"location": "https://example.com/a.jpg", "format": "jpeg", "type": "image_asset_pointer"}
    assert schema_of("ImageChunk")["properties"]["data"]["contentEncoding"] == "base64"
    for name, body in (("ImageChunk", sent), ("ImageAssetPointerChunk", stored)):
        for chunk in (body, body | {"expected_tokens": 64}, body | {"expected_tokens": None}, without(body, "type")):
            assert fits(name, chunk)
            assert fits("ModelInputChunk", chunk)
        assert not fits(name, without(body, "format"))
        assert not fits(name, body | {"format": "gif"})
        assert not fits(name, body | {"height": 8, "width": 8, "tokens": 64})
    assert not fits("ImageChunk", without(sent, "data") | {"image_data": "iVBORw0KGgo="})
    assert not fits("ImageAssetPointerChunk", without(stored, "location") | {"url": "https://example.com/a.jpg"})


def test_image_chunks_before_0_6_0() -> None:
    """height, width and tokens were required then, and expected_tokens refused."""
    body = {"data": "iVBORw0KGgo=", "format": "png"}
    size = {"height": 8, "width": 8, "tokens": 64}
    assert fits("ImageChunk", body | size, "0.5.1")
    assert not fits("ImageChunk", body, "0.5.1")
    assert not fits("ImageChunk", body | size | {"expected_tokens": 64}, "0.5.1")
    pointer = {"location": "l", "format": "png"}
    assert fits("ImageAssetPointerChunk", pointer | size, "0.5.1")
    assert not fits("ImageAssetPointerChunk", pointer, "0.5.1")


def test_chunks_of_text_need_no_tag() -> None:
    """Clients of these versions send {tokens: [...]}; with a tag it must be the right one."""
    assert fits("ModelInput", PROMPT)
    assert fits("ModelInput", {"chunks": [{"tokens": [1], "type": "encoded_text"}]})
    assert not fits("ModelInput", {"chunks": [{"tokens": [1], "type": "text"}]})
    assert not fits("ModelInput", {"chunks": [{"tokens": [1.5]}]})
    assert not fits("ModelInput", {"chunks": [[1, 2]]})


def test_losses_by_version() -> None:
    """cispo and dro came with 0.6.0."""
    first = ["cross_entropy", "importance_sampling", "ppo"]
    assert schema_of("LossFnType", "0.5.1")["enum"] == first
    assert schema_of("LossFnType", "0.6.0")["enum"] == [*first, "cispo", "dro"]
    body = {"data": [], "loss_fn": "dro"}
    assert fits("ForwardBackwardInput", body, "0.6.0")
    assert not fits("ForwardBackwardInput", body, "0.5.1")
    assert not fits("ForwardBackwardInput", body | {"loss_fn": "dpo"})


def test_parsed_tinker_paths_have_four_parts() -> None:
    """The whole path, run, type and checkpoint; the checkpoint keeps its folder, and its slash stays in paths."""
    body = {
        "tinker_path": "tinker://run/weights/0001",
        "training_run_id": "run",
        "checkpoint_type": "training",
        "checkpoint_id": "weights/0001",
    }
    assert fits("ParsedCheckpointTinkerPath", body)
    for name in body:
        assert not fits("ParsedCheckpointTinkerPath", without(body, name))
    assert not fits("ParsedCheckpointTinkerPath", body | {"checkpoint_type": "weights"})
    for path, item in plain(NEWEST)["paths"].items():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                is_checkpoint = parameter["name"] == "checkpoint_id"
                assert parameter.get("x-multi-segment", False) is is_checkpoint, path


def test_shape_may_be_null() -> None:
    """A tensor without shape, or with null, is one-dimensional; an empty shape is that of a single number."""
    body = {"data": [1, 2], "dtype": "int64"}
    assert schema_of("TensorData")["properties"]["shape"]["default"] is None
    for shape in (None, [2], [1, 2], []):
        assert fits("TensorData", body | {"shape": shape})
    assert fits("TensorData", body)
    assert not fits("TensorData", body | {"shape": 2})
    assert not fits("TensorData", body | {"dtype": "float64"})
    assert not fits("TensorData", body | {"data": [[1, 2]]})


def test_a_checkpoint_can_be_kept_for_ever() -> None:
    """ttl_seconds: null is an order of its own, which cannot be left out."""
    assert fits("SetCheckpointTtlRequest", {"ttl_seconds": 3600})
    assert fits("SetCheckpointTtlRequest", {"ttl_seconds": None})
    assert not fits("SetCheckpointTtlRequest", {})


def test_requests_refuse_unknown_keys_and_answers_do_not() -> None:
    """All bodies that clients send are strict but for what SamplingParams and telemetry events hold."""
    for path, item in plain(NEWEST)["paths"].items():
        for operation in item.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body:
                name = body["$ref"].rpartition("/")[2]
                assert schema_of(name)["additionalProperties"] is False, path
    assert fits("SamplingParams", {"temperature": 0.5, "min_p": 0.1})
    assert fits("HealthResponse", {"status": "ok", "version": 3})
