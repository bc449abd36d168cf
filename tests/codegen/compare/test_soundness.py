"""Random pairs of schemas against many values: what is called safe is never contradicted by a value."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from support.schema_documents import SAME, compare
from support.small_values import NAMES, VALUES
from tinkerwire_codegen.compare.change import NO_EXAMPLE, Change

Json = dict[str, Any]

PAIRS = 60
"""Pairs of each batch; one pair takes some 10 ms."""


class SchemaWriter:
    """Writer of random schemas; all objects list their properties or give a type for the others."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def write(self, depth: int = 2) -> Any:
        """Write a schema with up to ``depth`` levels of parts."""
        choice = self._random.random()
        if depth and choice < 0.28:
            return self._combine(depth - 1)
        kinds = ["integer", "number", "string", "boolean", "null"] + (["object", "array"] * 2 if depth else [])
        kind = self._random.choice(kinds)
        schema: Json = {"type": kind}
        for key, values in self._keywords(kind, depth).items():
            if self._random.random() < 0.35:
                schema[key] = self._random.choice(values)
        if kind == "object":
            schema["additionalProperties"] = self._random.choice([False, self.write(0)])
            schema["properties"] = {name: self.write(depth - 1) for name in self._some(NAMES)}
            if self._random.random() < 0.2:
                schema["patternProperties"] = {"^x": self.write(0)}
        if kind == "array":
            schema["items"] = self.write(depth - 1)
            if self._random.random() < 0.2:
                schema["prefixItems"] = [self.write(0) for _ in range(self._random.randint(1, 2))]
        if self._random.random() < 0.1:
            schema["enum"] = self._some([0, 1, 2, "a", "b", None, [], {}]) or [0]
        return schema

    def change(self, schema: Any) -> Any:
        """Change one thing of a schema, at any level."""
        changed: Any = json.loads(json.dumps(schema))
        places = [node for node in walk(changed) if isinstance(node, dict) and ("type" in node or "anyOf" in node)]
        place = self._random.choice(places)
        kind = place.get("type")
        words = self._keywords(kind, 1) if isinstance(kind, str) else {}
        choices = [key for key in place if key not in ("type", "properties")] + list(words)
        key = self._random.choice(choices) if choices else ""
        if key in words and (key not in place or self._random.random() < 0.6):
            place[key] = self._random.choice(words[key])
        elif key and key not in ("additionalProperties", "anyOf", "oneOf", "allOf"):
            del place[key]
        elif key in ("anyOf", "oneOf", "allOf"):
            place[key] = [*place[key], self.write(1)]
        elif kind == "object":
            place["properties"][self._random.choice(NAMES)] = self.write(1)
        return changed

    def _combine(self, depth: int) -> Json:
        key = self._random.choice(["anyOf", "oneOf", "allOf", "not", "if"])
        if key == "not":
            return {**self.write(depth), "not": self.write(depth)}
        if key == "if":
            parts = {name: self.write(depth) for name in ("if", *self._some(["then", "else"]))}
            return {**self.write(depth), **parts}
        members = [self.write(depth) for _ in range(self._random.randint(1, 3))]
        return {key: members, **(self.write(0) if self._random.random() < 0.2 else {})}

    def _keywords(self, kind: str, depth: int) -> dict[str, list[Any]]:
        numbers: dict[str, list[Any]] = {
            **{key: [0, 1, 2, 3.5] for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
            "multipleOf": [1, 2, 3, 0.5],
        }
        small = self.write(0) if depth else {"type": "string"}
        return {
            "integer": numbers,
            "number": numbers,
            "string": {"minLength": [0, 1, 2], "maxLength": [0, 1, 2], "pattern": ["^a", "b$", "^[ab]*$", "^x|a", "1"]},
            "array": {
                **{"minItems": [0, 1, 2], "maxItems": [0, 1, 2], "uniqueItems": [True, False]},
                **{"contains": [small], "minContains": [0, 1, 2], "maxContains": [1, 2]},
            },
            "object": {
                **{"required": [["a"], ["b"], ["a", "xc"]], "minProperties": [0, 1, 2], "maxProperties": [0, 1, 2]},
                **{"propertyNames": [{"pattern": "^x"}, {"maxLength": 1}, {"enum": ["a", "b"]}]},
                **{"dependentRequired": [{"a": ["b"]}, {"b": ["a", "xc"]}], "dependentSchemas": [{"a": small}]},
            },
        }.get(kind, {})

    def _some(self, values: Any) -> list[Any]:
        return [value for value in values if self._random.random() < 0.5]


def walk(node: Any) -> Iterator[Any]:
    """Yield all nodes of a schema."""
    yield node
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(item)


def accepted_by(schema: Any) -> set[int]:
    """Return the indices of the values that an independent validator accepts."""
    validator = jsonschema.Draft202012Validator(schema)
    return {index for index, value in enumerate(VALUES) if validator.is_valid(value)}


def write_pair(seed: int) -> tuple[Any, Any]:
    writer = SchemaWriter(seed)
    old = writer.write()
    return old, (writer.change(old) if seed % 4 else writer.write())


def check_pair(old: Any, new: Any) -> None:
    """Compare the verdicts on a pair, in both directions, with the values that both accept."""
    before, after = accepted_by(old), accepted_by(new)
    for direction, lost in (("request", before - after), ("response", after - before)):
        changes = compare(old, new, direction)
        levels = {change.level for change in changes}
        shown = [VALUES[index] for index in sorted(lost)[:3]]
        assert not lost or levels & {"breaking", "risky"}, (direction, shown, changes)
        is_same = all(change.reason == SAME for change in changes)
        assert not (is_same and before != after), (direction, [VALUES[i] for i in before ^ after][:3], changes)
        for change in changes:
            assert_example(change, old, new)


def assert_example(change: Change, old: Any, new: Any) -> None:
    """Check an example with the independent validator."""
    if change.example is NO_EXAMPLE:
        return
    is_old = (change.direction == "request") == (change.level == "breaking")
    if change.direction == "response" and change.level == "risky":
        is_old = True
    takes, refuses = (old, new) if is_old else (new, old)
    assert jsonschema.Draft202012Validator(takes).is_valid(change.example), change
    assert not jsonschema.Draft202012Validator(refuses).is_valid(change.example), change


@pytest.mark.parametrize("batch", range(5))
def test_no_value_contradicts_a_verdict(batch: int) -> None:
    """Values that the other side rejects exist only where a change is breaking or risky."""
    for seed in range(batch * PAIRS, (batch + 1) * PAIRS):
        old, new = write_pair(seed)
        try:
            check_pair(old, new)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {json.dumps(old)} -> {json.dumps(new)}: {error}") from None
