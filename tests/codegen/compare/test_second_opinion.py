"""A second opinion on the table of schemas: the package jsoncompat, and where both differ, the reason."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from support.schema_documents import COMPONENTS, PAIRS
from support.small_values import VALUES
from tinkerwire_codegen.compare.dialect import strip_annotations

IGNORES = "jsoncompat does not compare this keyword"
ANNOTATES = "jsoncompat compares no annotations"
CANNOT = "jsoncompat cannot read this schema"
OBEYS = "jsoncompat rejects what it cannot prove"
REASONS = {
    **dict.fromkeys(("pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"), IGNORES),
    **dict.fromkeys(("nullable means", "unknown keyword", "default", "read-only", "write-only"), ANNOTATES),
    **dict.fromkeys(("multipleOf of fractions", "definition by anchor", "dynamic reference"), CANNOT),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "dependentSchemas"), IGNORES),
    **dict.fromkeys(("not ", "if and then", "then ", "else ", "allOf", "oneOf of tagged"), OBEYS),
    **dict.fromkeys(("rules between properties", "property moved under"), OBEYS),
    **dict.fromkeys(("integer as a number", "propertyNames of known", "maxProperties of a closed"), OBEYS),
    "definition with a sibling": "jsoncompat ignores keywords beside a reference",
    "property added": "jsoncompat expects properties that the old schema does not declare",
    "property of a closed object removed": "readers miss the property, although no value is new",
    "patternProperties removed": "readers miss the property, although no value is new",
    "false schema": "readers miss the property, although no value is new",
}
"""The reasons of differences, by the beginning of the pair's name."""

ROLES = {"request": "deserializer", "response": "serializer"}
IS_COMPATIBLE = {"safe": True, "none": True, "same": True, "risky": False, "breaking": False}


def to_standalone(schema: Any) -> str:
    """Return a schema with all components, as jsoncompat requires."""
    return json.dumps({"allOf": [strip_annotations(schema)], "$defs": COMPONENTS}).replace(
        "#/components/schemas/", "#/$defs/"
    )


def find_differences() -> list[tuple[str, str, Any]]:
    """List the pairs and directions on which jsoncompat differs from the table, each with its verdict."""
    jsoncompat = pytest.importorskip("jsoncompat")
    differences = []
    for name, (old, new, in_requests, in_responses, _) in PAIRS.items():
        for direction, level in (("request", in_requests), ("response", in_responses)):
            texts = [to_standalone(yaml.safe_load(text)) for text in (old, new)]
            try:
                verdict = jsoncompat.check_compat(*texts, ROLES[direction])
            except ValueError as error:
                verdict = str(error)
            if verdict is not IS_COMPATIBLE[level]:
                differences.append((name, direction, verdict))
    return differences


def test_each_difference_has_a_reason() -> None:
    """Both differ only on pairs with a reason, and each reason is needed."""
    names = {name for name, _, _ in find_differences()}
    assert [name for name in sorted(names) if not name.startswith(tuple(REASONS))] == []
    assert [reason for reason in REASONS if not any(name.startswith(reason) for name in names)] == []


def test_no_value_supports_a_rejection_by_jsoncompat() -> None:
    """No value shows a break that only jsoncompat reports."""
    rejected = [(name, direction) for name, direction, verdict in find_differences() if verdict is False]
    assert rejected
    for name, direction in rejected:
        sides = [jsonschema.Draft202012Validator(json.loads(to_standalone(yaml.safe_load(t)))) for t in PAIRS[name][:2]]
        takes, refuses = sides if direction == "request" else sides[::-1]
        # The old schema of this pair declares no properties, so clients send none.
        values = [{}, 0, "a"] if name == "property added" else VALUES
        lost = [value for value in values if takes.is_valid(value) and not refuses.is_valid(value)]
        assert lost == [] or "read-only" in name, (name, direction, lost[:3])
