"""Two schemas of the same place: which values one takes and the other refuses, found by trying."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from .examples import ExampleGenerator
from .explain import Mismatch, MismatchFinder

Json = dict[str, Any]

ABOUT = frozenset({"description", "title", "example", "examples", "deprecated", "default", "discriminator", "summary"})


class Schemas:
    """The schemas of one document, ready to make values and to judge them."""

    def __init__(self, document: Json, other: Json) -> None:
        self.components: Json = document.get("components", {}).get("schemas", {})
        both = [each.get("components", {}).get("schemas", {}) for each in (document, other)]
        paths = [each.get("paths", {}) for each in (document, other)]
        self.examples = ExampleGenerator(document, [*both, *paths])
        self.mismatches = MismatchFinder(document)
        self._plain = {name: strip_annotations(schema) for name, schema in self.components.items()}

    def validator(self, schema: Json) -> Any:
        """A validator of a schema with all that it refers to."""
        whole = {**strip_annotations(schema), "components": {"schemas": self._plain}}
        return jsonschema_rs.Draft202012Validator(whole)

    def serialize_closure(self, schema: Json) -> str:
        """The schema and all that it refers to as text, without what does not decide on a value."""
        return json.dumps(self._collect_references(schema), sort_keys=True)

    def untagged_members(self, schema: Json) -> set[str]:
        """The objects that share a union without tags, which an open one among them lets take any value.

        Who reads knows by other means which of them to expect, so each counts by itself.
        """
        nodes = [schema, *(self.components.get(name, {}) for name in self._collect_references(schema) if name)]
        return {
            name for node in nodes for name in _untagged_members(node) if "properties" in self.components.get(name, {})
        }

    def _collect_references(self, schema: Json) -> dict[str, Any]:
        seen: dict[str, Any] = {"": strip_annotations(schema)}
        todo = list(_refs(seen[""]))
        while todo:
            name = todo.pop()
            if name not in seen:
                seen[name] = self._plain.get(name)
                todo += _refs(seen[name])
        return seen


def find_rejected_values(here: Schemas, there: Schemas, one: Json, other: Json) -> Iterator[tuple[Mismatch, Any]]:
    """Each reason for which a value of ``one`` is refused by ``other``, with the smallest value that shows it."""
    takes, refuses = here.validator(one), there.validator(other)
    candidates = sorted(here.examples.generate(one), key=lambda value: len(json.dumps(value)))
    seen = set()
    for value in candidates:
        if takes.is_valid(value) and not refuses.is_valid(value):
            errors = there.mismatches.find(other, value) or [Mismatch("", "the value is refused")]
            fresh = [error for error in errors if error not in seen]
            seen.update(fresh)
            for error in fresh:
                yield error, value


def strip_annotations(node: Any, *, inside: str = "") -> Any:
    """A schema without descriptions, defaults and marks; properties may be called like one of these."""
    if isinstance(node, list):
        return [strip_annotations(item) for item in node]
    if not isinstance(node, dict):
        return node
    if inside in ("properties", "schemas"):
        return {name: strip_annotations(item) for name, item in node.items()}
    kept = {key: item for key, item in node.items() if key not in ABOUT and not key.startswith("x-")}
    return {
        key: item if key in ("const", "enum") else strip_annotations(item, inside=key) for key, item in kept.items()
    }


def _untagged_members(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        members = [each["$ref"] for key in ("anyOf", "oneOf") for each in node.get(key, []) if "$ref" in each]
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
