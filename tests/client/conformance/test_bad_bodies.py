"""Bodies with one error, made from a schema."""

from __future__ import annotations

from typing import Any

import pytest

from tinkerwire._conformance.schema_requests.bad_bodies import BadBodyMaker

DOCUMENT: dict[str, Any] = {
    "components": {
        "schemas": {
            "Item": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer", "minimum": 1}, "note": {"type": ["string", "null"]}},
            }
        }
    }
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "items"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "items": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
        "mode": {"anyOf": [{"type": "string", "enum": ["fast", "slow"]}, {"type": "null"}]},
        "type": {"type": "string", "const": "request"},
        "free": {"type": "object", "additionalProperties": True},
    },
}
BODY = {"name": "a", "items": [{"size": 1, "note": "b"}], "type": "request", "free": {"x": 1}}
MAKER = BadBodyMaker(DOCUMENT, SCHEMA)


@pytest.mark.parametrize(
    ("kind", "errors"),
    [
        ("missing", ["name is missing", "items is missing", "items.0.size is missing"]),
        (
            "wrong_types",
            [
                'name is {"wrong":"type"}',
                "name is null",
                'items is {"wrong":"type"}',
                "items is null",
                'items.0 is {"wrong":"type"}',
                'items.0.size is {"wrong":"type"}',
                "items.0.size is null",
                'items.0.note is {"wrong":"type"}',
                'free is "wrong type"',
            ],
        ),
        ("out_of_bounds", ["mode is no-such-value", "name is empty", "items.0.size is 0"]),
    ],
)
def test_each_error_is_made_once(kind: str, errors: list[str]) -> None:
    """A schema has as many bad bodies as errors, and tags and free values have none."""
    made = [bad.error for bad in getattr(MAKER, kind)(BODY)]
    assert sorted(made) == sorted(errors)


def test_body_has_its_error_only() -> None:
    """A bad body differs from the valid one in one place, which stays as it was."""
    bad = next(bad for bad in MAKER.missing(BODY) if bad.error == "items.0.size is missing")
    assert bad.body == {**BODY, "items": [{"note": "b"}]}
    assert BODY["items"] == [{"size": 1, "note": "b"}]
