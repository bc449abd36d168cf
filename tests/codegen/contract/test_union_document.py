"""The union of all versions of a contract, on small documents."""

from __future__ import annotations

from typing import Any

import pytest

from support.contract_documents import NULL, TEXT, document, operation, ref
from tinkerwire_base.conversion.versioning import union_document


def read_union_schema(**schema: Any) -> dict[str, Any]:
    """Return a schema of the union document."""
    union: dict[str, Any] = union_document(document({"A": schema, "ID": TEXT}))["components"]["schemas"]["A"]
    return union


@pytest.mark.parametrize(
    ("owner", "detail"),
    [
        ({}, {}),
        ({"x-since": "0.1.0"}, {"x-since": "0.3.0"}),
        ({"x-since": "0.1.0"}, {"x-since": "0.2.0"}),
        ({"x-since": "0.6.0"}, {"x-since": "0.6.0"}),
        ({"x-until": "0.9.0"}, {"x-until": "0.9.0"}),
        ({"x-since": "0.6.0", "x-until": "0.9.0"}, {}),
        ({}, {"x-history": [{"until": "0.6.0", "schema": {"description": "Once."}}]}),
        ({}, {"x-history": [{"until": "0.3.0", "required": False, "schema": {}}]}),
    ],
)
def test_union_requires_properties_of_every_version(owner: dict[str, Any], detail: dict[str, Any]) -> None:
    """A property as old as its schema, or as the contract, stays required and unchanged."""
    union = read_union_schema(**owner, type="object", required=["a"], properties={"a": TEXT | detail})
    assert union == {"type": "object", "required": ["a"], "properties": {"a": TEXT}}


@pytest.mark.parametrize(
    "times",
    [
        {"x-since": "0.6.0"},
        {"x-until": "0.6.0"},
        {"x-history": [{"until": "0.6.0", "required": False, "schema": {}}]},
    ],
)
@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (TEXT, {"type": ["string", "null"], "default": None}),
        (ref("ID"), {"anyOf": [ref("ID"), NULL], "default": None}),
        ({"anyOf": [ref("ID"), TEXT]}, {"anyOf": [ref("ID"), TEXT, NULL], "default": None}),
        ({"anyOf": [ref("ID"), NULL]}, {"anyOf": [ref("ID"), NULL], "default": None}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"], "default": None}),
        ({"type": "string", "const": "x"}, {"anyOf": [{"type": "string", "const": "x"}, NULL], "default": None}),
        ({"type": "array", "items": TEXT}, {"anyOf": [{"type": "array", "items": TEXT}, NULL], "default": None}),
        ({"type": "string", "default": "x"}, {"type": "string", "default": "x"}),
    ],
)
def test_union_makes_sometimes_required_properties_optional(
    times: dict[str, Any], shape: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A property that some version lacks or does not require is optional, null by default, with its description."""
    detail = {"description": "It.", **shape, **times}
    union = read_union_schema(type="object", required=["a", "b"], properties={"a": detail, "b": TEXT})
    assert union["required"] == ["b"]
    assert union["properties"]["a"] == {"description": "It.", **expected}


def test_union_gives_later_properties_a_default() -> None:
    """A later property that was never required can be omitted from models too."""
    union = read_union_schema(type="object", properties={"a": TEXT | {"x-since": "0.6.0"}, "b": TEXT})
    assert union["properties"] == {"a": {"type": ["string", "null"], "default": None}, "b": TEXT}


def test_union_has_everything_of_every_version() -> None:
    """The union has schemas, values, members and operations of all versions, without marks."""
    schemas = {
        "A": TEXT | {"x-until": "0.6.0"},
        "B": TEXT | {"x-since": "0.6.0"},
        "E": {"type": "string", "enum": ["a", "b"], "x-enum-since": {"b": "0.6.0"}},
        "U": {"anyOf": [ref("A"), ref("B", **{"x-since": "0.6.0"})]},
    }
    paths = {"/a": {"get": operation(**{"x-until": "0.6.0"}), "post": operation(**{"x-since": "0.6.0"})}}
    union = union_document(document(schemas, paths))
    assert union["components"]["schemas"] == {
        "A": TEXT,
        "B": TEXT,
        "E": {"type": "string", "enum": ["a", "b"]},
        "U": {"anyOf": [ref("A"), ref("B")]},
    }
    assert union["paths"] == {"/a": {"get": operation(), "post": operation()}}
