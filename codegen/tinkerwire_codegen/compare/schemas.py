"""Comparison of two schemas of one place by example: values that one accepts and the other rejects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from .examples import ExampleGenerator
from .explain import Mismatch, MismatchFinder

Json = dict[str, Any]

ANNOTATIONS = frozenset(
    {"description", "title", "example", "examples", "deprecated", "default", "discriminator", "summary"}
)


class Schemas:
    """The schemas of one document, ready to generate and to validate values."""

    def __init__(self, document: Json, other_document: Json) -> None:
        """Initialize with a document, and the other document that it is compared with."""
        self.components: Json = document.get("components", {}).get("schemas", {})
        components = [source.get("components", {}).get("schemas", {}) for source in (document, other_document)]
        paths = [source.get("paths", {}) for source in (document, other_document)]
        self.examples = ExampleGenerator(document, [*components, *paths])
        self.mismatches = MismatchFinder(document)
        self._plain = {name: strip_annotations(schema) for name, schema in self.components.items()}

    def validator(self, schema: Json) -> Any:
        """Create a validator of a schema and of all that it refers to."""
        document = {**strip_annotations(schema), "components": {"schemas": self._plain}}
        return jsonschema_rs.Draft202012Validator(document)

    def serialize_closure(self, schema: Json) -> str:
        """Serialize a schema and all that it refers to, without annotations."""
        return json.dumps(self._collect_references(schema), sort_keys=True)

    def untagged_members(self, schema: Json) -> set[str]:
        """Return the objects that share a union without a tag.

        An open object among them lets the union accept any value. Readers know which member to expect, so each member
        is compared on its own.
        """
        nodes = [schema, *(self.components.get(name, {}) for name in self._collect_references(schema) if name)]
        return {
            name for node in nodes for name in _untagged_members(node) if "properties" in self.components.get(name, {})
        }

    def _collect_references(self, schema: Json) -> dict[str, Any]:
        schemas: dict[str, Any] = {"": strip_annotations(schema)}
        todo = list(_refs(schemas[""]))
        while todo:
            name = todo.pop()
            if name not in schemas:
                schemas[name] = self._plain.get(name)
                todo += _refs(schemas[name])
        return schemas


def find_rejected_values(
    here: Schemas, there: Schemas, accepted_schema: Json, rejected_schema: Json
) -> Iterator[tuple[Mismatch, Any]]:
    """Yield each reason why ``there`` rejects a value that ``here`` accepts, with the smallest value that shows it."""
    accepting, rejecting = here.validator(accepted_schema), there.validator(rejected_schema)
    candidates = sorted(here.examples.generate(accepted_schema), key=lambda value: len(json.dumps(value)))
    known_errors = set()
    for value in candidates:
        if accepting.is_valid(value) and not rejecting.is_valid(value):
            errors = there.mismatches.find(rejected_schema, value) or [Mismatch("", "the value is rejected")]
            new_errors = [error for error in errors if error not in known_errors]
            known_errors.update(new_errors)
            for error in new_errors:
                yield error, value


def strip_annotations(node: Any, *, inside: str = "") -> Any:
    """Remove descriptions, defaults and marks from a schema; properties with such names stay."""
    if isinstance(node, list):
        return [strip_annotations(item) for item in node]
    if not isinstance(node, dict):
        return node
    if inside in ("properties", "schemas"):
        return {name: strip_annotations(item) for name, item in node.items()}
    constraints = {key: item for key, item in node.items() if key not in ANNOTATIONS and not key.startswith("x-")}
    return {
        key: item if key in ("const", "enum") else strip_annotations(item, inside=key)
        for key, item in constraints.items()
    }


def _untagged_members(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        members = [member["$ref"] for key in ("anyOf", "oneOf") for member in node.get(key, []) if "$ref" in member]
        if len(members) > 1 and "discriminator" not in node:
            yield from (target.rpartition("/")[2] for target in members)
        for item in node.values():
            yield from _untagged_members(item)
    elif isinstance(node, list):
        for item in node:
            yield from _untagged_members(item)


def _refs(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str):
            yield target.rpartition("/")[2]
        for item in node.values():
            yield from _refs(item)
    elif isinstance(node, list):
        for item in node:
            yield from _refs(item)
