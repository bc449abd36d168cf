"""Tests that the server responds to any request, and never with a server error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tinkerwire._server.http.openapi import load_contract, resolve_reference
from tinkerwire.local import EmbeddedServer
from tinkerwire_base.call import WireRequest
from tinkerwire_generated.operations import OPERATIONS

DOCUMENT = load_contract("0.16.1")
SERVED = {op["operationId"]: op for item in DOCUMENT["paths"].values() for op in item.values()}
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
JUNK = st.recursive(
    SCALARS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PATH_TEXTS = st.sampled_from(["tinkerwire/byte-nano", "a", "", "0001", "../x", "tinker://a/weights/b"])


EXISTING_IDS: dict[str, Any] = {}
"""Ids that the server really has, so that fuzzing reaches beyond the door."""


def _draw_valid(schema: dict[str, Any], name: str = "") -> st.SearchStrategy[Any]:
    """Generate values that fit a schema: mostly small, with real ids for known names."""
    schema = resolve_reference(DOCUMENT, schema)
    if name in EXISTING_IDS:
        return st.just(EXISTING_IDS[name]) if name != "path" else PATH_TEXTS | st.just(EXISTING_IDS[name])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return st.one_of([_draw_valid(member, name) for member in schema[key]])
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return st.one_of([_draw_type(kind, schema) for kind in kinds])


def _draw_type(kind: str | None, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if kind == "object":
        fields = schema.get("properties", {})
        needed = {key: _draw_valid(fields[key], key) for key in schema.get("required", [])}
        optional = {key: _draw_valid(field, key) for key, field in fields.items() if key not in needed}
        if fields:
            return st.fixed_dictionaries(needed, optional=optional)
        extra = schema.get("additionalProperties", True)
        value = _draw_valid(extra) if isinstance(extra, dict) else JUNK
        keys = st.sampled_from(["target_tokens", "weights", "logprobs", "advantages", "x"])
        return st.dictionaries(keys, value, max_size=3)
    return {
        "array": st.lists(_draw_valid(schema.get("items", {})), max_size=3) if kind == "array" else st.nothing(),
        "string": PATH_TEXTS | st.text(max_size=8),
        "integer": st.integers(-3, 300) | st.integers(-(2**63), 2**63 - 1),
        "number": st.floats(-2, 2) | st.integers(-3, 300) | st.floats(allow_nan=False, allow_infinity=False),
        "boolean": st.booleans(),
        "null": st.none(),
        None: JUNK,
    }[kind]


def _mutate(value: Any, data: st.DataObject) -> Any:
    """Replace, drop or add one part somewhere inside a value."""
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: _mutate(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], _mutate(value[place], data), *value[place + 1 :]]
    if isinstance(value, dict) and data.draw(st.booleans()):
        return {**value, data.draw(st.text(max_size=4)): data.draw(JUNK)}
    return data.draw(JUNK)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """Start a server with a session, a model, a sampler and a checkpoint."""
    with EmbeddedServer(long_poll_s=2.0, seed=1) as server:
        session = _post(server, "create_session", {"tags": [], "user_metadata": None, "sdk_version": "1"})
        EXISTING_IDS.update(session_id=session["session_id"])
        model = {"model_seq_id": 10**6, "base_model": "tinkerwire/byte-nano", "lora_config": {"rank": 1}}
        EXISTING_IDS["model_id"] = _post(server, "create_model", {**EXISTING_IDS, **model})["model_id"]
        saved = _post(server, "save_weights", {"model_id": EXISTING_IDS["model_id"], "path": "fuzz"})
        sampler = {"sampling_session_seq_id": 10**6, "base_model": "tinkerwire/byte-nano"}
        opened = _post(server, "create_sampling_session", {"session_id": EXISTING_IDS["session_id"], **sampler})
        EXISTING_IDS.update(
            {
                "request_id": saved["request_id"],
                "sampling_session_id": opened["sampling_session_id"],
                "path": f"tinker://{EXISTING_IDS['model_id']}/weights/fuzz",
                # Long samples and large models would make this slow without finding more.
                "max_tokens": 2,
                "num_samples": 1,
                "base_model": "tinkerwire/byte-nano",
            }
        )
        yield server


def _post(server: EmbeddedServer, path: str, body: Any) -> Any:
    request = WireRequest(method="POST", path=f"/api/v1/{path}", headers={}, content=orjson.dumps(body))
    return orjson.loads(asyncio.run(server.handle(request)).content)


def _check(server: EmbeddedServer, request: WireRequest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    response = asyncio.run(server.handle(request))
    assert response.status < 500, response.content
    if response.status in (400, 404, 409, 410, 415, 422):
        assert orjson.loads(response.content)["detail"]
    if response.status == 200 and b'"request_id"' in response.content:
        poll = {"request_id": orjson.loads(response.content)["request_id"]}
        result = _post(server, "retrieve_future", poll)
        assert result.get("category") in (None, "user"), result
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


FUZZED = sorted(name for name, op in SERVED.items() if "requestBody" in op and name != "unload_model")


@pytest.mark.parametrize("operation", FUZZED)
@pytest.mark.parametrize("spoil", [False, True])
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_body_causes_no_server_error(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture, operation: str, spoil: bool, data: st.DataObject
) -> None:
    """Valid bodies, and bodies with one mutated part, give a 4xx, a result, or a user error."""
    body = data.draw(_draw_valid(SERVED[operation]["requestBody"]["content"]["application/json"]["schema"]))
    if spoil:
        body = _mutate(body, data)
    row = OPERATIONS[operation]
    ids = {"training_run_id": EXISTING_IDS["model_id"], "checkpoint_id": "weights/fuzz"}
    request = WireRequest(method=row.method, path=row.path.format(**ids), headers={}, content=orjson.dumps(body))
    _check(server, request, caplog)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_arbitrary_path_or_query_causes_no_server_error(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture, data: st.DataObject
) -> None:
    """The test sends arbitrary ids and query parameters to every path without a body."""
    row = OPERATIONS[data.draw(st.sampled_from(sorted(SERVED.keys() - set(FUZZED))))]
    text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
    path_ids = st.just(EXISTING_IDS["model_id"]) | PATH_TEXTS | text
    names = ("session_id", "sampler_id", "training_run_id", "checkpoint_id", "model_id")
    ids = {name: data.draw(path_ids) for name in names}
    query = data.draw(st.lists(st.tuples(st.sampled_from(["limit", "offset", "access_scope", "x"]), text), max_size=3))
    request = WireRequest(method=row.method, path=row.path.format(**ids), query=tuple(query), headers={}, content=b"{}")
    _check(server, request, caplog)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=40), operation=st.sampled_from(FUZZED))
def test_invalid_json_causes_no_server_error(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture, content: bytes, operation: str
) -> None:
    """The bodies are not JSON."""
    row = OPERATIONS[operation]
    path = row.path.format(training_run_id="r", checkpoint_id="weights/a")
    _check(server, WireRequest(method=row.method, path=path, headers={}, content=content), caplog)
