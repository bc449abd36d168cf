"""Mistakes of hand-written clients and servers in responses, each in its exact wire form."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from support.wire_forms import NEWEST, OLDEST, is_valid_body, project_contract, read_schema, without

TENSOR = {"data": [0.5, 1.0], "dtype": "float32", "shape": [2]}


def test_optim_step_returns_metrics_without_success() -> None:
    """The result is a map of numbers by name, which may be null or omitted."""
    assert list(read_schema("OptimStepResponse")["properties"]) == ["metrics"]
    assert is_valid_body("OptimStepResponse", {"metrics": {"grad_norm:mean": 0.5}})
    assert is_valid_body("OptimStepResponse", {"metrics": None})
    assert is_valid_body("OptimStepResponse", {})
    assert not is_valid_body("OptimStepResponse", {"metrics": {"note": "good"}})


def list_members(version: str) -> set[str]:
    return {m["$ref"].rpartition("/")[2] for m in read_schema("FutureRetrieveResponse", version)["anyOf"]}


RESULTS = {
    *("CreateModelResponse", "UnloadModelResponse", "ForwardBackwardOutput", "OptimStepResponse"),
    *("SaveWeightsResponse", "SaveWeightsForSamplerResponse", "SaveWeightsForSamplerResponseInternal"),
    *("LoadWeightsResponse", "SampleResponse"),
}


def test_future_results_are_the_result_types_themselves() -> None:
    """A 200 of retrieve_future is a result, a failure or a wait; since 0.14.0 also its size alone."""
    assert list_members(OLDEST) == RESULTS | {"TryAgainResponse", "RequestFailedResponse"}
    assert list_members("0.13.1") == list_members(OLDEST)
    assert list_members("0.14.0") == list_members(OLDEST) | {"CompleteMetadataResponse"}
    for result in (
        {"model_id": "m"},
        {"sequences": [{"stop_reason": "stop", "tokens": [1]}]},
        {"type": "try_again", "request_id": "r", "queue_state": "active"},
        {"error": "out of memory", "category": "server"},
        {"status": "complete_metadata", "response_payload_size": 1024},
    ):
        assert is_valid_body("FutureRetrieveResponse", result)
    assert not is_valid_body("FutureRetrieveResponse", [])


def test_future_results_have_no_wrapper() -> None:
    """No response has result or response_data; only the response with the size has status."""
    for name in list_members(NEWEST):
        fields = read_schema(name).get("properties", {})
        assert not {"result", "response", "response_data", "data"} & fields.keys(), name
        assert ("status" in fields) == (name == "CompleteMetadataResponse"), name
    assert is_valid_body("CompleteMetadataResponse", {"status": "complete_metadata", "response_payload_size": 0})
    assert not is_valid_body("CompleteMetadataResponse", {"status": "completed", "response_payload_size": 0})
    assert not is_valid_body("CompleteMetadataResponse", {"status": "complete_metadata"})


def test_try_again_has_a_queue_state() -> None:
    """The field queue_state is required and open for new values; queue_state_reason came with 0.7.0."""
    body = {"request_id": "r", "queue_state": "paused_capacity"}
    assert is_valid_body("TryAgainResponse", body)
    assert is_valid_body("TryAgainResponse", body | {"queue_state": "paused_for_lunch"})
    assert not is_valid_body("TryAgainResponse", without(body, "queue_state"))
    assert is_valid_body("TryAgainResponse", body | {"queue_state_reason": "no machines"})
    assert not is_valid_body("TryAgainResponse", body | {"queue_state_reason": 3})
    assert "queue_state_reason" in read_schema("TryAgainResponse", "0.7.0")["properties"]
    assert "queue_state_reason" not in read_schema("TryAgainResponse", "0.6.3")["properties"]


@pytest.mark.parametrize(
    ("value", "is_valid"),
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
def test_topk_prompt_logprobs_are_pairs_by_position(value: Any, is_valid: bool) -> None:
    """The list has one entry per prompt position: null, or a list of pairs [token, logprob]."""
    assert is_valid_body("SampleResponse", {"sequences": [], "topk_prompt_logprobs": value}) is is_valid


def test_stop_reason_accepts_new_values() -> None:
    """The reasons are length and stop, and a server may add others."""
    assert read_schema("StopReason")["enum"] == ["length", "stop"]
    for reason in ("length", "stop", "content_filter"):
        assert is_valid_body("SampledSequence", {"stop_reason": reason, "tokens": []})
    assert not is_valid_body("SampledSequence", {"stop_reason": None, "tokens": []})
    assert not is_valid_body("SampledSequence", {"tokens": []})


def test_archive_url_has_an_expiry() -> None:
    """The URL comes as a redirect with Location and Expires, and becomes url and expires, both required."""
    assert read_schema("CheckpointArchiveUrlResponse")["required"] == ["url", "expires"]
    path = "/api/v1/training_runs/{training_run_id}/checkpoints/{checkpoint_id}/archive"
    responses = project_contract(NEWEST)["paths"][path]["get"]["responses"]
    assert list(responses["302"]["headers"]) == ["Location", "Expires"]
    assert "200" not in responses


def test_supported_models_are_open_objects() -> None:
    """A model of the server is an object that keeps unknown keys, never a string."""
    assert is_valid_body("GetServerCapabilitiesResponse", {"supported_models": [{"model_name": "b", "context": 32768}]})
    assert is_valid_body("GetServerCapabilitiesResponse", {"supported_models": [{}]})
    assert not is_valid_body("GetServerCapabilitiesResponse", {"supported_models": ["b"]})
    assert read_schema("SupportedModel").get("additionalProperties", True) is True


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
def test_times_have_a_zone(name: str, fields: tuple[str, ...]) -> None:
    """Every time is an RFC 3339 string with Z or an offset; naive times and numbers are invalid."""
    for field in fields:
        check = jsonschema_rs.validator_for(read_schema(name)["properties"][field], validate_formats=True)
        assert check.is_valid("2025-10-01T12:00:00.5Z")
        assert check.is_valid("2025-10-01T14:00:00+02:00")
        assert not check.is_valid("2025-10-01T12:00:00")
        assert not check.is_valid(1759320000)


def test_cursors_have_three_fields() -> None:
    """A cursor has offset, limit and total_count; lists of runs always have one, lists of checkpoints since 0.4.0."""
    cursor = {"offset": 0, "limit": 20, "total_count": 1}
    assert is_valid_body("TrainingRunsResponse", {"training_runs": [], "cursor": cursor})
    assert not is_valid_body("TrainingRunsResponse", {"training_runs": []})
    assert not is_valid_body("TrainingRunsResponse", {"training_runs": [], "cursor": None})
    assert is_valid_body("CheckpointsListResponse", {"checkpoints": [], "cursor": cursor})
    assert is_valid_body("CheckpointsListResponse", {"checkpoints": [], "cursor": None})
    assert "cursor" not in read_schema("CheckpointsListResponse", OLDEST)["properties"]
    for name in cursor:
        incomplete = without(cursor, name)
        assert not is_valid_body("TrainingRunsResponse", {"training_runs": [], "cursor": incomplete})
        assert not is_valid_body("CheckpointsListResponse", {"checkpoints": [], "cursor": incomplete})


def test_loss_outputs_are_maps_of_tensors() -> None:
    """The field loss_fn_outputs has one map per datum, from names to tensors with data and dtype."""
    body = {"loss_fn_output_type": "scalar", "metrics": {"loss:sum": 1.5}}
    assert is_valid_body("ForwardBackwardOutput", body | {"loss_fn_outputs": [{"logprobs": TENSOR}, {}]})
    assert not is_valid_body("ForwardBackwardOutput", body | {"loss_fn_outputs": [{"logprobs": [0.5]}]})
    assert not is_valid_body("ForwardBackwardOutput", body | {"loss_fn_outputs": [TENSOR]})
    assert not is_valid_body("ForwardBackwardOutput", body | {"loss_fn_outputs": {"logprobs": TENSOR}})


def test_loss_is_a_metric() -> None:
    """ForwardBackwardOutput has three required fields; the loss is in the metrics."""
    schema = read_schema("ForwardBackwardOutput")
    assert list(schema["properties"]) == ["loss_fn_output_type", "loss_fn_outputs", "metrics"]
    assert schema["required"] == list(schema["properties"])


def test_error_categories_are_known_values() -> None:
    """The categories are unknown, server and user, in lower case; the contract accepts other values."""
    assert read_schema("RequestErrorCategory")["enum"] == ["unknown", "server", "user"]
    for category in ("unknown", "server", "user", "User", "quota"):
        assert is_valid_body("RequestFailedResponse", {"error": "e", "category": category})
    assert not is_valid_body("RequestFailedResponse", {"error": "e", "category": None})
    assert not is_valid_body("RequestFailedResponse", {"category": "user"})


def test_parsed_tinker_path_has_four_parts() -> None:
    """The parts are path, run, type and checkpoint; the checkpoint keeps its folder, and its slash stays in URLs."""
    body = {
        "tinker_path": "tinker://run/weights/0001",
        "training_run_id": "run",
        "checkpoint_type": "training",
        "checkpoint_id": "weights/0001",
    }
    assert is_valid_body("ParsedCheckpointTinkerPath", body)
    for name in body:
        assert not is_valid_body("ParsedCheckpointTinkerPath", without(body, name))
    assert not is_valid_body("ParsedCheckpointTinkerPath", body | {"checkpoint_type": "weights"})
    for path, item in project_contract(NEWEST)["paths"].items():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                is_checkpoint = parameter["name"] == "checkpoint_id"
                assert parameter.get("x-multi-segment", False) is is_checkpoint, path
