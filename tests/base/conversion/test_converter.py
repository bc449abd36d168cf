"""Converter: known mistakes of ports, version rules, unknown keys and the texts of errors."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import orjson
import pytest

from tinkerwire._wire.contract_rules import contract_rules
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.version_rules import VersionRules
from tinkerwire_base.errors import DialectError
from tinkerwire_base.unset import UNSET
from tinkerwire_generated import models

m: Any = models
PROMPT = m.ModelInput.from_ints([1, 2])
PARAMS = m.SamplingParams(max_tokens=4)
ANY = Converter()


def converter_at(version: str) -> Converter:
    return Converter(contract_rules(version, version, f"wire {version}"))


def encode_at(model: Any, version: str = "0.16.1") -> Any:
    return orjson.loads(converter_at(version).encode(model))


@pytest.mark.parametrize(
    ("value", "wire"), [(None, {}), (False, {"prompt_logprobs": False}), (True, {"prompt_logprobs": True})]
)
def test_prompt_logprobs_have_three_values(value: bool | None, wire: Any) -> None:
    """Null is omitted, so the server decides; false and true are sent."""
    body = encode_at(m.SampleRequest(prompt=PROMPT, sampling_params=PARAMS, prompt_logprobs=value))
    assert {key: item for key, item in body.items() if key == "prompt_logprobs"} == wire
    assert ANY.structure(body, m.SampleRequest).prompt_logprobs is value


def test_defaults_are_sent() -> None:
    """All defaults of a request stand on the wire, and no optional null does."""
    assert encode_at(PARAMS) == {"max_tokens": 4, "temperature": 1, "top_k": -1, "top_p": 1}
    assert encode_at(m.AdamParams()) == {
        "learning_rate": 1e-4,
        "beta1": 0.9,
        "beta2": 0.95,
        "eps": 1e-12,
        "weight_decay": 0.0,
        "grad_clip_norm": 0.0,
    }


def test_required_null_is_sent() -> None:
    """Null is not left out where the contract requires the key."""
    assert encode_at(m.SetCheckpointTtlRequest(ttl_seconds=None)) == {"ttl_seconds": None}
    request = m.CreateSessionRequest(tags=[], user_metadata=None, sdk_version="0.16.1")
    assert encode_at(request)["user_metadata"] is None


@pytest.mark.parametrize("reason", ["stop", "length", "tool_call"])
def test_unknown_stop_reasons_survive(reason: str) -> None:
    """A stop reason that this contract does not know is passed on, in and out."""
    wire = {"stop_reason": reason, "tokens": [1], "logprobs": [-0.5]}
    sequence = ANY.structure(wire, m.SampledSequence)
    assert sequence.stop_reason == reason
    assert ANY.unstructure(sequence) == wire


def test_supported_models_keep_unknown_keys() -> None:
    """SupportedModel is an object, and its unknown keys are kept, in and out."""
    wire = {"supported_models": [{"model_name": "a", "context": 8, "prices": {"in": 1}}, {}]}
    capabilities = ANY.structure(wire, m.GetServerCapabilitiesResponse)
    assert capabilities.supported_models[0].extra_fields == {"context": 8, "prices": {"in": 1}}
    assert ANY.unstructure(capabilities) == wire


def test_unknown_key_named_extra_fields_is_kept() -> None:
    """The name of the field for unknown keys may be an unknown key itself."""
    assert ANY.structure({"extra_fields": 1}, m.SupportedModel).extra_fields == {"extra_fields": 1}


def test_request_models_reject_unknown_keys() -> None:
    """A typo in a request is named."""
    with pytest.raises(ValueError, match=r"extra fields found \(rnak\) @ LoraConfig"):
        ANY.structure({"rank": 8, "rnak": 9}, m.LoraConfig)


@pytest.mark.parametrize(
    "text", ["2025-01-31T12:00:00Z", "2025-01-31T12:00:00.000000000+00:00", "2025-01-31T13:00:00+01:00"]
)
def test_datetimes_are_aware(text: str) -> None:
    """Times of the wire are aware datetimes, and go out with their offset."""
    response = ANY.structure({"url": "u", "expires": text}, m.CheckpointArchiveUrlResponse)
    assert response.expires == datetime(2025, 1, 31, 12, tzinfo=timezone.utc)
    assert response.expires.utcoffset() is not None
    assert ANY.structure(ANY.unstructure(response), m.CheckpointArchiveUrlResponse) == response


def test_topk_prompt_logprobs_keep_pairs_and_nulls() -> None:
    """A list of null or of (token, logprob) pairs, as tuples."""
    wire = {"sequences": [], "topk_prompt_logprobs": [None, [[5, -0.5], [6, -1.5]], []]}
    response = ANY.structure(wire, m.SampleResponse)
    assert response.topk_prompt_logprobs == [None, [(5, -0.5), (6, -1.5)], []]
    assert orjson.loads(ANY.encode(response))["topk_prompt_logprobs"] == wire["topk_prompt_logprobs"]


@pytest.mark.parametrize("pair", [[5], [5, -0.5, 1], 5, {"token": 5}])
def test_pairs_must_have_two_items(pair: Any) -> None:
    """Anything but two entries is named with its place."""
    with pytest.raises(
        ValueError, match=r"expected an array of 2, got .* @ SampleResponse.topk_prompt_logprobs\[0\]\[0\]"
    ):
        ANY.structure({"sequences": [], "topk_prompt_logprobs": [[pair]]}, m.SampleResponse)


def test_long_lists_are_not_copied() -> None:
    """Lists of numbers are not copied on their way in, nor arrays on their way out."""
    tokens, logprobs = [1, 2], [-0.5, -1.0]
    sequence = ANY.structure({"stop_reason": "stop", "tokens": tokens, "logprobs": logprobs}, m.SampledSequence)
    assert sequence.tokens is tokens and sequence.logprobs is logprobs
    array = np.ones(3, np.float32)
    assert np.shares_memory(ANY.unstructure(m.TensorData.from_numpy(array))["data"], array)


@pytest.mark.parametrize("dtype", ["int16", "int64", "uint64", "float16", "float32", "float64", ">f4", "bool"])
def test_arrays_of_responses_are_written(dtype: str) -> None:
    """Servers may hold arrays of any dtype and memory order where the wire has lists."""
    array = np.array([1, 0, 1, 0], dtype=dtype)[::2]
    body = orjson.loads(ANY.encode(m.SampledSequence(stop_reason="stop", tokens=[], logprobs=array)))
    assert body["logprobs"] == [1, 1]


def test_fields_that_a_version_lacks_are_omitted_at_their_default() -> None:
    """Older servers do not receive newer fields that are not set."""
    assert "weight_decay" not in encode_at(m.AdamParams(), "0.6.3")
    assert "allow_metadata_only" not in encode_at(m.FutureRetrieveRequest(request_id="r"), "0.13.1")
    assert encode_at(m.SaveWeightsRequest(model_id="m"), "0.4.1") == {"model_id": "m", "type": "save_weights"}


@pytest.mark.parametrize(
    ("model", "version", "subject", "span"),
    [
        (m.AdamParams(weight_decay=0.1), "0.6.3", "AdamParams.weight_decay", "from 0.7.0 on"),
        (m.SaveWeightsRequest(model_id="m", ttl_seconds=5), "0.8.1", "SaveWeightsRequest.ttl_seconds", "from 0.9.0 on"),
        (
            m.LoadWeightsRequest(model_id="m", path="p", optimizer=True),
            "0.4.1",
            "LoadWeightsRequest.optimizer",
            "from 0.6.0 on",
        ),
        (
            m.ImageChunk(data=b"", format="png", height=1, width=1, tokens=1),
            "0.16.1",
            "ImageChunk.height",
            "from 0.3.0 to before 0.6.0",
        ),
        (m.WeightsInfoRequest(tinker_path="p"), "0.4.1", "WeightsInfoRequest", "from 0.6.0 on"),
        (
            m.ForwardBackwardInput(data=[], loss_fn="cispo"),
            "0.4.1",
            "ForwardBackwardInput.loss_fn 'cispo'",
            "from 0.6.0 on",
        ),
        (
            m.ForwardBackwardInput(data=[], loss_fn="ppo", loss_fn_config={"clip": 0.2, "loss_id": "l"}),
            "0.25.0",
            "ForwardBackwardInput.loss_fn_config with a string in it",
            "from 0.26.2 on",
        ),
        (
            m.TrainingBillingEvent(token_count=1, extra_fields={"cached": True}),
            "0.30.4",
            "TrainingBillingEvent.extra_fields",
            "from 0.31.0 on",
        ),
    ],
)
def test_values_that_a_version_lacks_raise_dialect_error(model: Any, version: str, subject: str, span: str) -> None:
    """The error for a field, model or enum value that the version lacks has its name and versions."""
    with pytest.raises(DialectError) as caught:
        converter_at(version).encode(model)
    assert str(caught.value).startswith(f"{subject} is not in wire {version}: it exists {span};")
    assert (caught.value.what, caught.value.version) == (subject, version)
    assert str(caught.value.since) in span


@pytest.mark.parametrize(
    ("model", "version", "field"),
    [
        (m.LoadWeightsRequest(model_id="m", path="p"), "0.16.1", "LoadWeightsRequest.optimizer"),
        (m.ImageChunk(data=b"", format="png", expected_tokens=None), "0.4.1", "ImageChunk.height"),
    ],
)
def test_missing_fields_that_a_version_requires_raise_dialect_error(model: Any, version: str, field: str) -> None:
    """A field that only some versions require is optional in the others."""
    with pytest.raises(DialectError, match=f"{field} is required in wire {version}; give it a value"):
        converter_at(version).encode(model)
    assert encode_at(m.LoadWeightsRequest(model_id="m", path="p"), "0.4.1")["path"] == "p"
    assert "height" not in encode_at(m.ImageChunk(data=b"", format="png"))


def test_scalar_types_depend_on_the_version() -> None:
    """Numbers may stand where strings came later, and everything may once they have come."""
    numbers = m.ForwardBackwardInput(data=[], loss_fn="ppo", loss_fn_config={"clip": 0.2, "steps": 2})
    assert encode_at(numbers, "0.4.1")["loss_fn_config"] == {"clip": 0.2, "steps": 2}
    with_loss_id = m.ForwardBackwardInput(data=[], loss_fn="ppo", loss_fn_config={"loss_id": "l"})
    assert encode_at(with_loss_id, "0.26.2")["loss_fn_config"] == {"loss_id": "l"}


def test_loss_functions_depend_on_the_version() -> None:
    """Each version takes the losses that it has; a name that none has is refused with the list."""
    assert encode_at(m.ForwardBackwardInput(data=[], loss_fn="ppo"), "0.4.1")["loss_fn"] == "ppo"
    assert encode_at(m.ForwardBackwardInput(data=[], loss_fn="dro"), "0.6.3")["loss_fn"] == "dro"
    with pytest.raises(ValueError, match=r"ForwardBackwardInput.loss_fn: must be one of 'cross_entropy', "):
        m.ForwardBackwardInput(data=[], loss_fn="crossentropy")


@pytest.mark.parametrize("version", ["new", "", "0.x", "v0.4.1"])
def test_invalid_version_raises_value_error(version: str) -> None:
    """The constructor of version rules rejects an invalid version."""
    with pytest.raises(ValueError, match=r"wire version: expected numbers separated by dots, such as 0.16.1"):
        VersionRules(min_version=version)


@pytest.mark.parametrize(
    ("wire", "kind", "pattern"),
    [
        ({}, m.CreateSessionResponse, "required field missing @ CreateSessionResponse.session_id"),
        ({"session_id": 5}, m.CreateSessionResponse, "expected string, got int @ CreateSessionResponse.session_id"),
        ({"session_id": None}, m.CreateSessionResponse, "expected string, got null @ CreateSessionResponse.session_id"),
        ([], m.CreateSessionResponse, "expected object, got array"),
        ("text", m.OptimStepResponse, "expected object, got string"),
        (None, m.OptimStepResponse, "expected object, got null"),
        ({"metrics": [1]}, m.OptimStepResponse, "expected null or object, got array @ OptimStepResponse.metrics"),
        ({"supported_models": {}}, m.GetServerCapabilitiesResponse, "expected array, got object @"),
        ({"supported_models": "ab"}, m.GetServerCapabilitiesResponse, "expected array, got string @"),
        ({"supported_models": [{}, 5]}, m.GetServerCapabilitiesResponse, r"expected object, got int @ .*models\[1\]"),
        ({"sessions": "ab"}, m.ListSessionsResponse, "expected array, got string @ ListSessionsResponse.sessions"),
        ({"stop_reason": 5, "tokens": []}, m.SampledSequence, "expected string, got int @ SampledSequence.stop_reason"),
        ({"stop_reason": "stop", "tokens": None}, m.SampledSequence, "expected array, got null @"),
        ({"url": "u", "expires": 5}, m.CheckpointArchiveUrlResponse, "expected an RFC 3339 timestamp .* got 5 @"),
        (
            {"training_runs": [], "cursor": {"offset": 0, "limit": True, "total_count": 1}},
            m.TrainingRunsResponse,
            r"expected int, got bool @ TrainingRunsResponse.cursor.limit",
        ),
        ({"sequences": [{"stop_reason": "stop"}]}, m.SampleResponse, r"missing @ SampleResponse.sequences\[0\].tokens"),
        ({"data": "%", "format": "png"}, m.ImageChunk, "ImageChunk.data"),
    ],
)
def test_invalid_values_raise_errors_with_their_place(wire: Any, kind: Any, pattern: str) -> None:
    """An invalid value raises ValueError with the expected type, the value and its place."""
    with pytest.raises(ValueError, match=pattern):
        ANY.structure(wire, kind)


def test_one_error_names_all_invalid_values() -> None:
    """One error has one line per invalid value."""
    with pytest.raises(ValueError) as caught:
        ANY.structure({"offset": "a", "limit": "b"}, m.Cursor)
    assert str(caught.value).count(" @ Cursor.") == 3


def test_nan_and_infinity_are_read() -> None:
    """Servers in Python write NaN and infinity; the user must receive a diverged loss."""
    text = b'{"metrics": {"loss:sum": NaN, "grad:max": -Infinity, "n:sum": 1}}'
    metrics = ANY.decode(text, m.OptimStepResponse).metrics or {}
    assert math.isnan(metrics["loss:sum"]) and metrics["grad:max"] == -math.inf and metrics["n:sum"] == 1
    assert ANY.decode(b"\xef\xbb\xbf{}", m.OptimStepResponse) == m.OptimStepResponse()


def test_invalid_json_raises_value_error() -> None:
    """The error for invalid JSON has the position."""
    with pytest.raises(ValueError, match="line 1 column"):
        ANY.decode(b"<html>", m.Cursor)


@pytest.mark.parametrize(
    ("metadata", "pattern"),
    [
        ({"a": {1, 2}}, r"CreateModelRequest.user_metadata.a: {1, 2} cannot be written as JSON: Type is not JSON"),
        ({"a": [1, object]}, r"CreateModelRequest.user_metadata.a\[1\]: .* cannot be written as JSON"),
        ({"a": {5: 1}}, r"CreateModelRequest.user_metadata.a: JSON keys must be str, got 5 \(int\)"),
        (
            {"a": 2**70},
            r"user_metadata.a: 1180591620717411303424 cannot be written as JSON: Integer exceeds 64-bit range",
        ),
        ({"a": "\ud800"}, r"user_metadata.a: .* cannot be written as JSON: str is not valid UTF-8"),
    ],
)
def test_values_without_json_form_raise_type_error(metadata: Any, pattern: str) -> None:
    """Free-form values that JSON has not are refused with their place, value and reason."""
    request = m.CreateModelRequest(session_id="s", model_seq_id=0, base_model="b", user_metadata=metadata)
    with pytest.raises(TypeError, match=pattern):
        ANY.encode(request)


def test_numpy_scalars_are_written() -> None:
    """A learning rate out of a numpy schedule is a number like any other."""
    assert encode_at(m.AdamParams(learning_rate=np.float32(0.5), beta1=np.float64(0.25)))["learning_rate"] == 0.5
    assert encode_at(m.SamplingParams(max_tokens=np.int64(3)))["max_tokens"] == 3


def test_invalid_values_in_mutated_lists_raise_type_error() -> None:
    """Models are frozen, but users can mutate the lists in them; the error names the model."""
    datums: list[Any] = []
    batch = m.ForwardBackwardInput(data=datums, loss_fn="ppo")
    datums.append([1, 2])
    with pytest.raises(TypeError, match="ForwardBackwardInput: a value does not have the type of its field"):
        ANY.encode(batch)


def test_error_bodies_of_any_shape_are_kept() -> None:
    """Servers send any ``detail``: an absent one, null and a structure stay distinct."""
    for wire in ({}, {"detail": None}, {"detail": [{"msg": "no"}]}, {"error": "no"}):
        body = ANY.structure(wire, m.ErrorBody)
        assert (body.detail is UNSET) == ("detail" not in wire)
        assert ANY.unstructure(body) == wire


def test_converters_serve_many_threads() -> None:
    """The first use from many threads at once is as good as any other."""
    conv = converter_at("0.16.1")
    request = m.SampleRequest(prompt=PROMPT, sampling_params=PARAMS)
    with ThreadPoolExecutor(16) as pool:
        texts = set(pool.map(lambda _: conv.encode(request), range(64)))
        responses = list(pool.map(lambda _: conv.structure({"sequences": []}, m.SampleResponse), range(64)))
    assert len(texts) == 1
    assert all(response == responses[0] for response in responses)


def test_naive_datetimes_are_not_sent() -> None:
    """A naive datetime would mean another moment on every machine."""
    fields: dict[str, Any] = {"event_id": "e", "event_session_index": 0, "severity": "INFO"}
    with pytest.raises(ValueError, match=r"SessionStartEvent.timestamp: .* has no time zone; pass an aware datetime"):
        m.SessionStartEvent(timestamp=datetime(2025, 1, 31), **fields)
    event = m.SessionStartEvent(timestamp=datetime(2025, 1, 31, tzinfo=timezone(timedelta(hours=1))), **fields)
    assert encode_at(event)["timestamp"] == "2025-01-31T00:00:00+01:00"
