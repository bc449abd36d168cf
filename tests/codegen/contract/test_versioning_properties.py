"""Properties of projections and unions, on generated documents."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.contract_documents import TEXT, document, operation, ref
from tinkerwire_base.conversion.versioning import parse_version, project, union_document

versions = st.tuples(st.just(0), st.integers(1, 20), st.integers(0, 3)).map(lambda v: ".".join(map(str, v)))
known_versions = versions.filter(lambda v: parse_version(v) >= parse_version("0.3.0"))
times = st.fixed_dictionaries({}, optional={"x-since": versions, "x-until": versions})
changes = {"required": st.booleans(), "schema": st.just({"type": "number"})}
history = st.lists(st.fixed_dictionaries({"until": versions}, optional=changes), max_size=2)
fields = st.builds(lambda time, past: TEXT | time | {"x-history": past}, times, history)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    properties = draw(st.dictionaries(st.sampled_from("abcd"), fields))
    required = [name for name in properties if draw(st.booleans())]
    enum = {
        "type": "string",
        "enum": ["x", "y"],
        "x-enum-since": draw(st.dictionaries(st.sampled_from("xy"), versions)),
    }
    schemas = {
        "A": {"type": "object", "properties": properties, "required": required} | draw(times),
        "E": enum | draw(times),
        "U": {"anyOf": [ref("A") | draw(times), ref("E") | draw(times)]},
        "V": {"anyOf": [ref("U")]},
    }
    return document(schemas, {"/a": {"get": operation(**draw(times))}})


@given(documents(), known_versions)
def test_projection_is_idempotent(contract: dict[str, Any], version: str) -> None:
    """A plain document has no marks, so each of its versions is the document itself."""
    before = copy.deepcopy(contract)
    projected = project(contract, version)
    assert contract == before
    assert project(projected, version) == projected
    assert "x-" not in repr(projected)


@given(documents(), known_versions)
def test_projection_is_consistent(contract: dict[str, Any], version: str) -> None:
    """With any marks, every required property exists, and every reference has a target."""
    schemas = project(contract, version)["components"]["schemas"]
    for schema in schemas.values():
        assert set(schema.get("required", [])) <= set(schema.get("properties", {}))
        members = schema.get("anyOf", [ref("U")] if "U" in schemas else [])
        assert all(member["$ref"].rpartition("/")[2] in schemas for member in members)


@given(documents(), known_versions)
def test_union_covers_every_version(contract: dict[str, Any], version: str) -> None:
    """The union has each version's schemas and properties, and requires no more than the version does."""
    union_schemas = union_document(contract)["components"]["schemas"]
    for name, schema in project(contract, version)["components"]["schemas"].items():
        assert set(schema.get("properties", {})) <= set(union_schemas[name].get("properties", {}))
        assert set(union_schemas[name].get("required", [])) <= set(schema.get("required", []))
    assert "x-" not in repr(union_schemas)
