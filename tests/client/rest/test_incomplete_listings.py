"""Listings of servers that omit values: the rest arrives, and one warning names each missing value."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from tinkerwire import types
from tinkerwire_base.conversion import lenient

pytestmark = pytest.mark.timeout(60)
RUN = {
    "training_run_id": "m1",
    "base_model": "base",
    "model_owner": None,
    "is_lora": True,
    "last_request_time": "yesterday",
    "lora_rank": 4,
}
CHECKPOINT = {"checkpoint_id": "weights/a", "checkpoint_type": "training", "tinker_path": "tinker://m1/weights/a"}
EVENT = {"bucket_start": "2026-01-01T00:00:00Z", "event_info": {"type": "training", "token_count": None}}
SESSION = {"session_id": "s1", "created_at": 1767225600, "owner": None, "project_id": None}
Json = dict[str, Any]
RestCall = Callable[[tw.RestClient], "tw.APIFuture[Any]"]
LISTINGS: dict[str, tuple[RestCall, str, Json, list[str]]] = {
    "runs": (
        lambda rest: rest.list_training_runs(),
        "training_runs",
        {"training_runs": [RUN, RUN], "cursor": {"offset": 0, "limit": 20, "total_count": None}},
        ["TrainingRun.model_owner", "TrainingRun.last_request_time", "Cursor.total_count"],
    ),
    "checkpoints": (
        lambda rest: rest.list_user_checkpoints(),
        "checkpoints",
        {"checkpoints": [CHECKPOINT, CHECKPOINT | {"size_bytes": "big"}]},
        ["Checkpoint.time", "Checkpoint.size_bytes"],
    ),
    "search": (
        lambda rest: rest.search_sessions(types.SessionSearchRequest()),
        "sessions/search",
        {"sessions": [SESSION]},
        [f"SessionSummary.{name}" for name in ("created_at", "owner", "project_id", "checkpoints_count")],
    ),
    "usage": (
        lambda rest: rest.get_billing_usage("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        "billing/usage/events",
        {"data": [EVENT, EVENT], "sessions": {"s1": None, "s2": {}}},
        [
            "BillingUsageEvent.bucket_end",
            "TrainingBillingEvent.token_count",
            "an entry of BillingUsageResponse.sessions",
        ],
    ),
    "audit": (
        lambda rest: rest.get_audit_log(),
        "audit",
        {"entries": [{"timestamp": None, "event": "e"}]},
        ["AuditLogEntry.timestamp"],
    ),
    "storage": (
        lambda rest: rest.get_current_checkpoint_storage_usage(),
        "billing/usage/checkpoints/current",
        {"data": [{"checkpoint_count": 1, "size_bytes": None}]},
        ["CurrentCheckpointStorageUsageItem.size_bytes", "CurrentCheckpointStorageUsageItem.size_gigabytes"],
    ),
    "session": (
        lambda rest: rest.get_session("s1"),
        "sessions/s1",
        {"training_run_ids": [], "sampler_ids": ["a"], "display_name": 5},
        ["GetSessionResponse.display_name"],
    ),
    "sampler": (
        lambda rest: rest.get_sampler("a"),
        "samplers/a",
        {"sampler_id": "a", "base_model": None},
        ["GetSamplerResponse.base_model"],
    ),
    "capabilities": (
        lambda rest: rest.get_server_capabilities(),
        "get_server_capabilities",
        {"supported_models": [{"model_name": "b", "max_context_length": "32k"}]},
        ["SupportedModel.max_context_length"],
    ),
}


@pytest.fixture(autouse=True)
def no_earlier_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the warnings of other tests."""
    monkeypatch.setattr(lenient, "_reported", set())


@pytest.mark.parametrize(("call", "path", "response", "fields"), LISTINGS.values(), ids=LISTINGS)
def test_listing_with_missing_values_arrives(
    server: ScriptedServer,
    caplog: pytest.LogCaptureFixture,
    call: RestCall,
    path: str,
    response: Json,
    fields: list[str],
) -> None:
    """A listing with missing values arrives, and one warning names each missing value, also after two calls."""
    server.rules[path] = lambda _: ScriptedResponse(response)
    with open_client(server.url, wire_version="0.38.0") as client, caplog.at_level(logging.WARNING, "tinkerwire"):
        rest = client.create_rest_client()
        results = [call(rest).result(TEST_TIMEOUT_S) for _ in range(2)]
    assert results[0] == results[1]
    warnings = [text for text in caplog.messages if "is read as None" in text]
    assert sorted(text.partition(" is ")[0] for text in warnings) == sorted(fields)


def test_run_with_missing_values_keeps_the_others(server: ScriptedServer) -> None:
    """A run without owner and time keeps its other values."""
    server.rules["training_runs"] = lambda _: ScriptedResponse({"training_runs": [RUN]})
    with open_client(server.url) as client:
        response = client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S)
    (run,) = response.training_runs
    assert (run.training_run_id, run.base_model, run.lora_rank) == ("m1", "base", 4)
    assert (run.model_owner, run.last_request_time, response.cursor) == (None, None, None)


@pytest.mark.parametrize(
    ("path", "response", "location"),
    [
        (
            "training_runs",
            {"training_runs": [RUN, RUN | {"training_run_id": None}]},
            "training_runs[1].training_run_id",
        ),
        ("checkpoints", {"checkpoints": [CHECKPOINT | {"tinker_path": 5}]}, "checkpoints[0].tinker_path"),
        ("checkpoints", {"checkpoints": None}, "checkpoints"),
        ("sessions", {"sessions": ["s1", None]}, "entry 1: expected string, got null"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_missing_id_or_path_is_an_error(server: ScriptedServer, path: str, response: Json, location: str) -> None:
    """A missing essential field raises an error that names the entry."""
    calls: dict[str, RestCall] = {
        "training_runs": lambda rest: rest.list_training_runs(),
        "checkpoints": lambda rest: rest.list_user_checkpoints(),
        "sessions": lambda rest: rest.list_sessions(),
    }
    server.rules[path] = lambda _: ScriptedResponse(response)
    with open_client(server.url) as client, pytest.raises(tw.APIResponseValidationError) as caught:
        calls[path](client.create_rest_client()).result(TEST_TIMEOUT_S)
    assert location in str(caught.value)


def test_missing_base_model_is_an_error_if_needed(server: ScriptedServer) -> None:
    """get_sampler returns None for a missing base model; get_base_model raises an error."""
    server.rules["samplers/sampler1"] = lambda _: ScriptedResponse({"sampler_id": "sampler1", "base_model": None})
    with open_client(server.url) as client:
        assert client.create_rest_client().get_sampler("sampler1").result(TEST_TIMEOUT_S).base_model is None
        with pytest.raises(tw.TinkerError, match="sampler1: the server does not report the base model"):
            client.create_sampling_client(base_model="base").get_base_model()
