"""Every endpoint of the contract, as the bytes that its stub makes."""

from __future__ import annotations

import importlib
import inspect
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.instances import Instances
from tinkerwire_base.call import Call, Operation
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.versioning import union_document
from tinkerwire_base.unset import UNSET
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_generated import models
from tinkerwire_generated.api import runs, sampling, session
from tinkerwire_generated.operations import OPERATIONS

CONTRACT = load(Path(__file__).parents[2] / "schema")
UNION_INSTANCES = Instances(union_document(CONTRACT))
ROWS = [(path, method, row) for path, item in CONTRACT["paths"].items() for method, row in item.items()]
NAMES = [row["operationId"] for _, _, row in ROWS]
CONVERTER = Converter()


def stub(row: dict[str, Any]) -> Any:
    module = importlib.import_module(f"tinkerwire_generated.api.{row['tags'][0]}")
    return getattr(module, row["operationId"])


def find_body_type(row: dict[str, Any]) -> str | None:
    content = row.get("requestBody", {}).get("content", {}).get("application/json")
    return content and str(content["schema"]["$ref"]).rpartition("/")[2]


def test_operations_equal_those_of_the_contract() -> None:
    """OPERATIONS is the contract's list of endpoints, each with its name, method, path, tag and request model."""
    assert sorted(OPERATIONS) == sorted(NAMES)
    for path, method, row in ROWS:
        operation = OPERATIONS[row["operationId"]]
        kind = find_body_type(row)
        assert operation.name == row["operationId"]
        assert (operation.method, operation.path, operation.tag) == (method.upper(), path, row["tags"][0])
        assert operation.request is (getattr(models, kind) if kind else None)


@pytest.mark.parametrize(("path", "method", "row"), ROWS, ids=NAMES)
def test_results_equal_those_of_the_contract(path: str, method: str, row: dict[str, Any]) -> None:
    """Each status of the contract has its type, or None without content."""
    results = OPERATIONS[row["operationId"]].results
    assert sorted(map(str, results)) == sorted(status for status in row["responses"] if status != "default")
    for status, kind in results.items():
        content = row["responses"][str(status)].get("content")
        assert (kind is None) == (content is None), status


@pytest.mark.parametrize(("path", "method", "row"), ROWS, ids=NAMES)
@settings(max_examples=3)
@given(data=st.data())
def test_stubs_make_the_right_request(path: str, method: str, row: dict[str, Any], data: st.DataObject) -> None:
    """Method, path, query, headers and body equal those of the contract, for each operation."""
    arguments: dict[str, Any] = {}
    for parameter in row.get("parameters", []):
        if parameter["in"] == "path":
            arguments[parameter["name"]] = "id-1:x"
        elif parameter["in"] == "query":
            arguments[parameter["name"]] = 7 if parameter["schema"].get("type") == "integer" else "accessible"
    query = {p["name"]: str(arguments[p["name"]]) for p in row.get("parameters", []) if p["in"] == "query"}
    kind = find_body_type(row)
    if kind:
        arguments["body"] = CONVERTER.structure(data.draw(UNION_INSTANCES.of(kind)), getattr(models, kind))
    request = stub(row)(**arguments).encode(CONVERTER)
    assert request.method == method.upper()
    assert request.path == re.sub(r"\{\w+\}", "id-1:x", path)
    assert dict(request.query) == query
    assert request.headers["accept"] == "application/json"
    assert request.headers.get("content-type") == ("application/json" if kind else None)
    assert (request.content is None) == (kind is None)
    if kind:
        assert CONVERTER.structure(orjson.loads(request.content or b""), getattr(models, kind)) == arguments["body"]


@pytest.mark.parametrize(("path", "method", "row"), ROWS, ids=NAMES)
def test_stubs_are_typed_and_described(path: str, method: str, row: dict[str, Any]) -> None:
    """A stub has the contract's summary, its path parameters by position and all others by name."""
    function = stub(row)
    assert function.__doc__ == row["summary"]
    parameters = inspect.signature(function).parameters
    by_position = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert by_position == re.findall(r"\{(\w+)\}", path)
    assert function.__annotations__.keys() >= parameters.keys() | {"return"}


def test_unset_query_parameters_are_omitted() -> None:
    """UNSET and None put nothing into the query; a contract's defaults are sent."""
    assert session.get_session("s").encode(CONVERTER).query == ()
    assert session.get_session("s", access_scope=UNSET).encode(CONVERTER).query == ()
    assert session.list_sessions().encode(CONVERTER).query == (("limit", "20"), ("offset", "0"))


def test_query_values_have_their_text_form() -> None:
    """Booleans are true and false, moments are ISO text."""
    operation = Operation(name="x", tag="x", method="GET", path="/x", get_results=lambda: {200: None})
    moment = datetime(2025, 1, 31, tzinfo=timezone.utc)
    call: Call[None] = Call(operation, query={"a": True, "b": False, "c": moment, "d": None})
    expected = (("a", "true"), ("b", "false"), ("c", "2025-01-31T00:00:00+00:00"))
    assert call.encode(CONVERTER).query == expected


def test_slashes_of_checkpoint_ids_are_not_escaped() -> None:
    """A checkpoint id goes into the path as it is, slash included."""
    request = runs.publish_checkpoint("run:1", "sampler_weights/a b").encode(CONVERTER)
    assert request.path == "/api/v1/training_runs/run:1/checkpoints/sampler_weights/a%20b/publish"


def test_slashes_of_other_ids_are_escaped() -> None:
    """Any other id stays one segment, so that it cannot address another endpoint."""
    request = session.get_session("a/b?c#d%e").encode(CONVERTER)
    assert request.path == "/api/v1/sessions/a%2Fb%3Fc%23d%25e"


@pytest.mark.parametrize("value", ["", "..", ".", "a/../b", "/a", "a/", "a//b"])
def test_ids_with_dot_segments_are_rejected(value: str) -> None:
    """Empty and dot segments raise an error that names the parameter and the value."""
    with pytest.raises(ValueError, match=re.escape(f"checkpoint_id: {value!r} cannot be part of a path")):
        runs.delete_checkpoint("run", value).encode(CONVERTER)


@pytest.mark.parametrize("value", [None, 5, UNSET, b"id"])
def test_ids_must_be_text(value: Any) -> None:
    """An id that is not text is rejected, instead of being sent as None or UNSET."""
    with pytest.raises(ValueError, match="sampler_id: expected the id as a str, got"):
        sampling.get_sampler(value).encode(CONVERTER)
