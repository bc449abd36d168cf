"""Pydantic's methods on models: what they give, what they refuse, and models inside of models of pydantic's."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any

import attrs
import numpy as np
import pytest

from tinkerwire_generated.models import (
    AdamParams,
    Checkpoint,
    CheckpointsListResponse,
    CustomLossNode,
    Datum,
    EncodedTextChunk,
    ImageChunk,
    ModelInput,
    SampledSequence,
    SampleRequest,
    SampleResponse,
    SamplingParams,
    TensorData,
)

NOON = datetime(2025, 1, 31, 12, tzinfo=timezone.utc)
CHECKPOINT = Checkpoint(
    checkpoint_id="weights/1", checkpoint_type="training", time=NOON, tinker_path="tinker://r/weights/1"
)
REQUEST = SampleRequest(
    prompt=ModelInput(chunks=[EncodedTextChunk(tokens=[1, 2]), ImageChunk(data=b"\x89PNG", format="png")]),
    sampling_params=SamplingParams(max_tokens=4, stop=["a", "b"]),
)


def test_dumps_contain_only_dicts_lists_and_text() -> None:
    """Bytes become base64 text and arrays lists; fields that the newest wire lacks are omitted."""
    assert REQUEST.prompt.model_dump() == {
        "chunks": [
            {"tokens": [1, 2], "type": "encoded_text"},
            {"data": "iVBORw==", "format": "png", "expected_tokens": None, "type": "image"},
        ]
    }
    datum = Datum(ModelInput.from_ints(np.array([1])), {"weights": np.ones(1, np.float32)})
    assert datum.model_dump()["model_input"] == {"chunks": [{"tokens": [1], "type": "encoded_text"}]}
    assert datum.model_dump()["loss_fn_inputs"]["weights"]["data"] == [1.0]
    assert "height" in ImageChunk(data=b"x", format="png", height=3).model_dump()


def test_dump_modes_convert_datetimes_and_tuples() -> None:
    """Python keeps datetimes and tuples; JSON has neither."""
    assert CHECKPOINT.model_dump()["time"] is NOON
    assert CHECKPOINT.model_dump(mode="json")["time"] == "2025-01-31T12:00:00Z"
    topk: Any = [None, [(5, -0.5)]]
    response = SampleResponse(sequences=[], topk_prompt_logprobs=topk)
    assert response.model_dump()["topk_prompt_logprobs"] == [None, [(5, -0.5)]]
    assert response.model_dump(mode="json")["topk_prompt_logprobs"] == [None, [[5, -0.5]]]


def test_dumps_omit_nulls_and_defaults_on_request() -> None:
    """Dumps omit nulls and defaults at every depth on request; required fields stay."""
    assert SamplingParams(max_tokens=3).model_dump(exclude_none=True) == {
        "max_tokens": 3,
        "temperature": 1.0,
        "top_k": -1,
        "top_p": 1.0,
    }
    expected = {
        "prompt": {"chunks": [{"tokens": [1, 2]}, {"data": "iVBORw==", "format": "png"}]},
        "sampling_params": {"max_tokens": 4, "stop": ["a", "b"]},
    }
    assert REQUEST.model_dump(exclude_defaults=True) == expected
    assert REQUEST.model_dump(exclude_unset=True) == expected
    # An absent key, as opposed to null.
    assert "shape" not in _unset_field().model_dump()


def _unset_field() -> Any:
    from tinkerwire_generated.models import TensorDataParam  # noqa: PLC0415

    return TensorDataParam(data=[1.0], dtype="float32")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"include": {"num_samples"}}, {"num_samples": 1}),
        ({"include": {"prompt", "num_samples"}, "exclude": {"prompt"}}, {"num_samples": 1}),
        ({"include": {"prompt": ..., "num_samples": ...}, "exclude": {"prompt": ...}}, {"num_samples": 1}),
    ],
)
def test_include_and_exclude_select_fields(choice: dict[str, Any], expected: Any) -> None:
    """The names of top-level fields select the fields of a dump."""
    assert REQUEST.model_dump(**choice) == expected


@pytest.mark.parametrize("argument", ["include", "exclude"])
def test_names_within_fields_are_rejected(argument: str) -> None:
    """An unsupported choice raises an error instead of a dump of other fields."""
    choice: dict[str, Any] = {argument: {"prompt": {"chunks"}}}
    with pytest.raises(TypeError, match=f"{argument}: names within fields are not supported"):
        REQUEST.model_dump(**choice)


def test_dumps_serialize_to_json() -> None:
    """The JSON is compact or indented, and NaN becomes null."""
    assert AdamParams(beta1=0.5).model_dump_json(exclude_defaults=True) == '{"beta1":0.5}'
    assert AdamParams(beta1=0.5).model_dump_json(indent=2, exclude_defaults=True) == '{\n  "beta1": 0.5\n}'
    assert AdamParams(beta1=0.5).model_dump_json(indent=4, exclude_defaults=True) == '{\n    "beta1": 0.5\n}'
    stop = SamplingParams(stop="ä")
    assert stop.model_dump_json(include={"stop"}) == '{"stop":"ä"}'
    with pytest.raises(TypeError, match="ensure_ascii"):
        stop.model_dump_json(ensure_ascii=True)
    nan = SampledSequence(stop_reason="stop", tokens=[1], logprobs=[float("nan")])
    for options in ({}, {"indent": 3}):
        assert json.loads(nan.model_dump_json(**options))["logprobs"] == [None]


def test_validation_returns_equal_models() -> None:
    """Dicts of Python's values and of JSON's, and models as they are."""
    assert SampleRequest.model_validate(REQUEST) is REQUEST
    mixed = {"prompt": REQUEST.prompt, "sampling_params": {"max_tokens": 4, "stop": ("a", "b")}}
    assert SampleRequest.model_validate(mixed) == REQUEST
    assert CheckpointsListResponse.model_validate({"checkpoints": [CHECKPOINT.model_dump()]}).checkpoints == [
        CHECKPOINT
    ]
    assert Checkpoint.model_validate_json(CHECKPOINT.model_dump_json().encode()) == CHECKPOINT
    with pytest.raises(NotImplementedError, match=r"AdamParams: from_attributes .*; pass a dict"):
        AdamParams.model_validate(object(), from_attributes=True)
    tensor = {"data": np.ones(2, np.float32), "dtype": "float32"}
    assert TensorData.model_validate(tensor).raw is tensor["data"]


@pytest.mark.parametrize(
    ("cls", "value", "pattern"),
    [
        (AdamParams, {"beta1": "x"}, "AdamParams.beta1|beta1"),
        (AdamParams, {"bata1": 0.5}, "bata1"),
        (AdamParams, 3, "expected object"),
        (ModelInput, {"chunks": [{"tokens": ["a"]}]}, "chunks"),
    ],
)
def test_invalid_values_raise_value_error(cls: Any, value: Any, pattern: str) -> None:
    """The error names the place; pydantic's own error is a ValueError, too."""
    with pytest.raises(ValueError, match=pattern):
        cls.model_validate(value)
    with pytest.raises(ValueError, match=pattern):
        cls.model_validate_json(json.dumps(value))


def test_copies_are_equal_and_update_fields() -> None:
    """Shallow, deep, and with other values, which are checked."""
    assert REQUEST.model_copy().prompt is REQUEST.prompt
    deep_copy = REQUEST.model_copy(deep=True)
    assert deep_copy == REQUEST and deep_copy.prompt.chunks[0] is not REQUEST.prompt.chunks[0]
    assert SamplingParams(seed=1).model_copy(update={"max_tokens": 3}) == SamplingParams(seed=1, max_tokens=3)
    with pytest.raises(TypeError, match=r"SamplingParams.max_tokens: expected"):
        SamplingParams().model_copy(update={"max_tokens": "3"})


def test_model_fields_describe_the_fields() -> None:
    """Each field has a name, type and default; unknown keys are not fields."""
    fields = Checkpoint.model_fields
    assert list(fields)[:3] == ["checkpoint_id", "checkpoint_type", "time"] and "extra_fields" not in fields
    assert fields["time"].annotation is datetime and fields["time"].is_required()
    assert fields["public"].default is False and not fields["public"].is_required()
    assert SampleRequest.model_fields["num_samples"].default == 1
    by_factory = CustomLossNode.model_fields["args"]
    assert by_factory.default_factory is list and not by_factory.is_required()


@pytest.mark.parametrize("name", ["model_construct", "model_fields_set", "model_json_schema", "model_rebuild"])
def test_unsupported_methods_name_an_alternative(name: str) -> None:
    """Models do not have these methods for ``hasattr``; access raises an error instead of a different behaviour."""
    for owner in (AdamParams, AdamParams()):
        assert not hasattr(owner, name)
        with pytest.raises(AttributeError, match=rf"^AdamParams\.{name} is not supported; \w+"):
            getattr(owner, name)


def test_pydantic_models_validate_and_dump_models_as_fields() -> None:
    """Pydantic validates them from dicts and dumps them; JSON Schemas of them come from the user."""
    pydantic = pytest.importorskip("pydantic")

    class Rollout(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        prompt: ModelInput
        params: SamplingParams | None = None

    rollout = Rollout(prompt=ModelInput.from_ints([1]), params={"max_tokens": 3})
    assert rollout.params == SamplingParams(max_tokens=3)
    assert Rollout.model_validate_json(rollout.model_dump_json()) == rollout
    assert rollout.model_dump(exclude_none=True)["params"] == SamplingParams(max_tokens=3).model_dump(exclude_none=True)
    with pytest.raises(NotImplementedError, match=r"ModelInput: .*; annotate the field with pydantic.WithJsonSchema"):
        Rollout.model_json_schema()
    adapter = pydantic.TypeAdapter(Annotated[ModelInput, pydantic.WithJsonSchema({"type": "object"})])
    assert adapter.json_schema() == {"type": "object"}
    with pytest.raises(pydantic.ValidationError, match="max_tokens"):
        Rollout(prompt=ModelInput.from_ints([1]), params={"max_tokens": "x"})

    @dataclass
    class Pair:
        tensor: TensorData

    adapter = pydantic.TypeAdapter(Pair)
    pair = Pair(TensorData(data=[1.5], dtype="float32"))
    assert adapter.validate_json(adapter.dump_json(pair)) == pair
    assert pydantic.TypeAdapter(list[AdamParams]).validate_python([{"beta1": 0.5}]) == [AdamParams(beta1=0.5)]


def test_methods_import_their_implementations_lazily() -> None:
    """Importing the models loads neither pydantic nor what the methods do."""
    script = (
        "import sys; from tinkerwire_generated.models import *; "
        "print([m for m in ('pydantic', 'pydantic_core', 'tinkerwire_base.compat.dumping',"
        " 'tinkerwire_base.compat.fields', 'tinkerwire_base.compat.validating') if m in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"


def test_models_stay_attrs_classes() -> None:
    """The methods add no field and no slot."""
    assert [field.name for field in attrs.fields(AdamParams)] == list(AdamParams.model_fields)
    assert not hasattr(AdamParams(), "__dict__")


def test_methods_work_on_derived_classes() -> None:
    """A derived class has the fields of its base."""

    class Greedy(SamplingParams):
        """Class of a user."""

    assert list(Greedy.model_fields) == list(SamplingParams.model_fields)
    assert Greedy.model_validate({"max_tokens": 3}).model_dump() == SamplingParams(max_tokens=3).model_dump()
