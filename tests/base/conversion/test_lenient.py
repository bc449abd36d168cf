"""Lenient reading: a missing, null or garbled value of a descriptive response is lost alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tinkerwire_base.conversion import lenient
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.reflection import wire_name
from tinkerwire_generated import models as m

Place = tuple[str | int, ...]
TIME = "2026-01-31T12:00:00Z"
CURSOR = {"offset": 0, "limit": 20, "total_count": 2}
CHECKPOINT = {
    "checkpoint_id": "weights/a",
    "checkpoint_type": "training",
    "time": TIME,
    "tinker_path": "tinker://m1/weights/a",
    "size_bytes": 7,
    "public": True,
    "expires_at": TIME,
    "user_metadata": {"k": "v"},
}
RUN = {
    "training_run_id": "m1",
    "base_model": "base",
    "model_owner": "me",
    "is_lora": True,
    "corrupted": True,
    "lora_rank": 8,
    "last_request_time": TIME,
    "last_checkpoint": CHECKPOINT,
    "last_sampler_checkpoint": CHECKPOINT,
    "user_metadata": {"k": "v"},
}
OPTIMIZER = {"type": "adamw"}
STATUSES = [
    {
        "type": "failed",
        "category": "user",
        "message": "x",
        "reason": {"type": "request", "request_id": "r1", "request_type": "Sample"},
    },
    {"type": "failed", "category": "user", "message": "x", "reason": {"type": "training_run", "training_run_id": "m1"}},
    {"type": "client_finished", "reason": {"type": "errored"}, "detail": "x"},
    {"type": "cancelled", "detail": "x"},
    {"type": "active"},
]
EVENTS = [
    {"type": "training", "token_count": 3},
    {"type": "sampling_prefill", "token_count": 3, "cached": True},
    {"type": "sampling_sample", "token_count": 3},
    {"type": "checkpoint", "count": 3},
    {"type": "storage", "gigabyte_hours": 0.5, "free": True},
]
RESPONSES: dict[type, Any] = {
    m.TrainingRunsResponse: {"training_runs": [RUN, RUN | {"training_run_id": "m2"}], "cursor": CURSOR},
    m.TrainingRun: RUN,
    m.CheckpointsListResponse: {"checkpoints": [CHECKPOINT, CHECKPOINT], "cursor": CURSOR},
    m.CheckpointArchiveUrlResponse: {"url": "https://x", "expires": TIME},
    m.ExternalWeightsUrlsResponse: {"urls": {"a": "https://x"}, "expires": TIME},
    m.WeightsInfoResponse: {
        "base_model": "b",
        "is_lora": True,
        "lora_rank": 4,
        "train_unembed": True,
        "train_mlp": True,
        "train_attn": True,
        "optimizer_config": OPTIMIZER,
    },
    m.GetSamplerResponse: {"sampler_id": "s", "base_model": "b", "model_path": "tinker://m1/sampler_weights/a"},
    m.GetInfoResponse: {
        "model_data": {"arch": "a", "model_name": "n", "tokenizer_id": "t"},
        "model_id": "m1",
        "is_lora": True,
        "lora_rank": 4,
        "model_name": "n",
        "optimizer_config": OPTIMIZER,
    },
    m.CreateSessionResponse: {"session_id": "s", "info_message": "i", "warning_message": "w", "error_message": "e"},
    m.ListSessionsResponse: {"sessions": ["s1", "s2"]},
    m.GetSessionResponse: {
        "training_run_ids": ["m1"],
        "sampler_ids": ["s1"],
        "user_metadata": {"k": "v"},
        "display_name": "d",
    },
    m.SessionTraceExportPollResponse: {"status": "ready", "url": "https://x", "error": "e"},
    m.SessionSearchResponse: {
        "sessions": [
            {
                "session_id": f"s{number}",
                "created_at": TIME,
                "owner": "me",
                "project_id": "p",
                "status": status,
                "checkpoints_count": 2,
                "display_name": "d",
                "user_metadata": {"k": "v"},
                "checkpoint_storage_bytes": 9,
            }
            for number, status in enumerate(STATUSES)
        ],
        "next_cursor": {"last_created_at": TIME, "last_session_id": "s9"},
    },
    m.AuditLogResponse: {
        "entries": [
            {
                "timestamp": TIME,
                "event": "e",
                "model_id": "m1",
                "tinker_path": "tinker://m1/weights/a",
                "purpose": "p",
                "event_details": {"k": "v"},
            }
        ]
    },
    m.BillingUsageResponse: {
        "data": [
            {
                "bucket_start": TIME,
                "bucket_end": TIME,
                "base_model": "b",
                "user_id": "u",
                "user_name": "n",
                "session_id": "s",
                "project_id": "p",
                "event_info": event,
                "estimated_cost_usd": 0.5,
                "effective_rate_usd_per_million_tokens": 0.5,
                "effective_rate_usd_per_gigabyte_month": 0.5,
            }
            for event in EVENTS
        ],
        "sessions": {"s": {"user_metadata": {"k": "v"}}, "t": {"user_metadata": {"k": "v"}}},
        "cost_data_through": TIME,
    },
    m.CurrentCheckpointStorageUsageResponse: {
        "effective_rate_usd_per_gigabyte_month": 0.5,
        "data": [
            {
                "project_id": "p",
                "org_user_urn": "u",
                "user_email": "e",
                "user_name": "n",
                "checkpoint_count": 1,
                "size_bytes": 2,
                "size_gigabytes": 0.5,
                "estimated_monthly_cost_usd": 0.5,
            }
        ],
    },
    m.GetServerCapabilitiesResponse: {
        "supported_models": [{"model_name": "b", "max_context_length": 9, "trainable": True, "sampleable": True}]
    },
}
STRICT = {
    *("training_runs", "checkpoints", "sessions", "entries", "data", "supported_models"),
    *("training_run_ids", "sampler_ids", "urls", "url", "tinker_path", "model_path", "next_cursor", "last_created_at"),
    *("training_run_id", "checkpoint_id", "session_id", "last_session_id", "sampler_id", "model_id", "model_data"),
    *("status", "model_name", "tokenizer_id"),
}
"""Names of essential fields; exceptions follow."""
ALSO_STRICT = {
    m.WeightsInfoResponse: {"base_model", "lora_rank", "train_unembed", "train_mlp", "train_attn"},
}
TAGGED = {"status", "reason", "event_info"}
"""Fields whose object has a tag; without the tag only the object is lost."""
MAPS = {("urls",), ("sessions",)}
"""Maps, whose entries may be missing."""
FREE = {"user_metadata", "event_details"}


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have no field reported yet, and collect what is."""
    monkeypatch.setattr(lenient, "_reported", set())
    return []


@pytest.fixture
def converter(warnings: list[str]) -> Converter:
    return Converter(report=warnings.append)


def list_places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every place of a JSON value, except within free metadata."""
    if place:
        yield place
    if place and place[-1] in FREE:
        return
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from list_places(item, (*place, key))


def read_value(value: Any, place: Place) -> Any:
    """Return the value at a place of JSON values and models, None below None."""
    for step in place:
        if value is None:
            return None
        if isinstance(value, dict | list):
            value = value[step]  # type: ignore[index]
        else:
            names = {wire_name(a): a.alias for a in type(value).__attrs_attrs__}
            value = getattr(value, names[str(step)])
    return value


def is_strict(kind: type, place: Place) -> bool:
    """Check whether a value is essential to the caller."""
    name = next(step for step in reversed(place) if isinstance(step, str))
    if place[:2] == ("urls", "a"):
        return True
    if kind is m.BillingUsageResponse and place[0] == "sessions":
        return False
    if isinstance(place[-1], int):
        return True
    if "reason" in place or (place[-1] == "model_name" and place[0] == "model_name"):
        return False
    if name == "status" and kind is m.SessionSearchResponse:
        return False
    return name in STRICT or name in ALSO_STRICT.get(kind, ())


def is_within(place: Place, outer: Place) -> bool:
    return place[: len(outer)] == outer


def find_lost_place(place: Place) -> Place:
    """Return the place of the value that is lost: the tagged object for a tag."""
    return place[:-1] if place[-1] == "type" and place[-2] in TAGGED else place


def garble(value: Any) -> Iterator[Any]:
    """Values that fit no other type."""
    if isinstance(value, str):
        yield from (5, [], {"a": 1}, True)
        if value == TIME:
            yield from ("soon", "", "2026-13-45T99:00:00Z", 1.7e9, "9" * 10_000)
    elif isinstance(value, bool | int | float):
        yield from ("x", [], {"a": 1})
    else:
        yield from ("x", 5, True, [] if isinstance(value, dict) else {})


def change_value(value: Any, place: Place, *new: Any) -> Any:
    """Return a copy with another value, or none, at a place."""
    variant = json.loads(json.dumps(value))
    inner = variant
    for step in place[:-1]:
        inner = inner[step]
    if new:
        inner[place[-1]] = new[0]
    else:
        del inner[place[-1]]
    return variant


def make_variants(response: Any, place: Place) -> Iterator[Any]:
    """Return the response with the value at a place null, garbled and missing."""
    for new in (None, *garble(read_value(response, place))):
        yield change_value(response, place, new)
    if isinstance(place[-1], str) and place[:-1] not in MAPS:
        yield change_value(response, place)


def format_place(kind: type, place: Place) -> str:
    """Return a place as errors name it."""
    steps = (f"[{step!r}]" if isinstance(step, int) else f".{step}" for step in place)
    return kind.__name__ + "".join(steps)


@pytest.mark.parametrize("kind", RESPONSES, ids=lambda kind: kind.__name__)
def test_null_missing_or_garbled_value_loses_only_itself(converter: Converter, warnings: list[str], kind: type) -> None:
    """With each value nulled, removed or garbled in turn, the others arrive, or an essential value raises an error."""
    response = RESPONSES[kind]
    everywhere = list(list_places(response))
    valid_model = converter.structure(response, kind)
    values = {place: read_value(valid_model, place) for place in everywhere}
    assert not warnings
    for place in everywhere:
        for variant in make_variants(response, place):
            try:
                model = converter.structure(variant, kind)
            except ValueError as error:
                assert is_strict(kind, place), error
                assert str(error).endswith((format_place(kind, place), format_place(kind, place[:-1]))), error
                assert str(place[-1]) in str(error)
                continue
            for path in everywhere:
                if not is_within(path, find_lost_place(place)) and not is_within(place, path):
                    assert read_value(model, path) == values[path], (place, variant)
            if is_strict(kind, place):
                assert read_value(model, place) is None, "only where the contract lets it be absent"


@pytest.mark.parametrize("kind", RESPONSES, ids=lambda kind: kind.__name__)
def test_garbled_essential_value_raises_an_error(converter: Converter, kind: type) -> None:
    """An id, a path or a list of another type is an error that names its place."""
    response = RESPONSES[kind]
    for place in filter(lambda place: is_strict(kind, place), list_places(response)):
        for new in (5, {"a": 1}) if isinstance(read_value(response, place), str) else ("x", [5]):
            with pytest.raises(ValueError, match=kind.__name__):
                converter.structure(change_value(response, place, new), kind)


def test_one_warning_per_field_names_it(converter: Converter, warnings: list[str]) -> None:
    """The first value that is read as None is reported with model and field, the next ones are not."""
    runs = [
        RUN | {"model_owner": None},
        RUN | {"model_owner": 5},
        RUN | {"last_request_time": "soon"},
        {key: value for key, value in RUN.items() if key != "is_lora"},
    ]
    for _ in range(2):
        page = converter.structure({"training_runs": runs, "cursor": CURSOR}, m.TrainingRunsResponse)
    assert [run.model_owner for run in page.training_runs] == [None, None, "me", "me"]
    assert page.training_runs[2].last_request_time is None
    assert isinstance(page.training_runs[0].last_request_time, datetime)
    assert page.training_runs[3].is_lora is None
    texts = [text.partition(" in a response")[0] for text in warnings]
    assert texts[0] == "TrainingRun.model_owner is missing or null"
    assert texts[1].startswith("TrainingRun.last_request_time is not readable (expected an RFC 3339")
    assert "'soon'" in texts[1]
    assert texts[2:] == ["TrainingRun.is_lora is missing or null"]


def test_optional_absent_value_causes_no_warning(converter: Converter, warnings: list[str]) -> None:
    """A null that is allowed and a default that is left out are read in silence."""
    checkpoint = converter.structure(CHECKPOINT | {"size_bytes": None, "expires_at": None}, m.Checkpoint)
    required_fields = {key: CHECKPOINT[key] for key in ("checkpoint_id", "checkpoint_type", "time", "tinker_path")}
    assert converter.structure(required_fields, m.Checkpoint).public is False
    assert (checkpoint.size_bytes, checkpoint.expires_at, warnings) == (None, None, [])


def test_unknown_kind_of_event_loses_only_itself(converter: Converter, warnings: list[str]) -> None:
    """An object of an unknown kind becomes None; an object without a tag is never guessed."""
    event = RESPONSES[m.BillingUsageResponse]["data"][0]
    events = [
        event | {"event_info": info}
        for info in ({"type": "new", "n": 1}, {"count": 3}, {"type": "checkpoint", "count": 3})
    ]
    usage = converter.structure({"data": events}, m.BillingUsageResponse)
    assert [record.event_info for record in usage.data] == [None, None, m.CheckpointBillingEvent(count=3)]
    assert len(warnings) == 1
    assert "BillingUsageEvent.event_info" in warnings[0]


def test_error_of_the_report_loses_no_value(warnings: list[str]) -> None:
    """A log handler that fails costs its warning."""

    def report(_: str) -> None:
        raise RuntimeError("no disk")

    assert Converter(report=report).structure(RUN | {"model_owner": None}, m.TrainingRun).training_run_id == "m1"


def test_only_responses_are_read_leniently() -> None:
    """Values of users and requests to a server are read strictly."""
    with pytest.raises(ValueError, match="model_owner"):
        m.TrainingRun.model_validate(RUN | {"model_owner": None})
    with pytest.raises(ValueError, match="last_created_at"):
        Converter().structure({"cursor": {"last_created_at": None, "last_session_id": "s"}}, m.SessionSearchRequest)


def test_results_of_training_and_sampling_are_strict(converter: Converter) -> None:
    """Logprobs, tokens and outputs are never read as None."""
    for kind in (m.SampleResponse, m.SampledSequence, m.ForwardBackwardOutput, m.CreateModelResponse, m.TensorData):
        assert not lenient.lenient_fields(kind)
    with pytest.raises(ValueError, match="tokens"):
        converter.structure({"sequences": [{"stop_reason": "length", "tokens": None}]}, m.SampleResponse)
