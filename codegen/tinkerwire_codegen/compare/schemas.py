"""The schemas of one document, as one direction sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import jsonschema_rs

from .dialect import NESTED_MAPS, select_direction, strip_annotations
from .examples import ExampleGenerator, is_base64, is_base64url
from .explain import MismatchFinder
from .merging import list_conjuncts, merge_conjuncts

Json = dict[str, Any]

FORMATS = {
    "x-base64": is_base64,
    "x-base64url": is_base64url,
}
VALUE_KEYS = frozenset({"const", "enum"})
UNORDERED_KEYS = frozenset({"required", "enum", "type", "anyOf", "oneOf", "allOf"})


class Schemas:
    """The schemas of one document and direction, ready to generate and to validate values."""

    def __init__(self, document: Json, direction: str) -> None:
        """Initialize with a prepared document, and "request" or "response"."""
        components = document.get("components", {}).get("schemas", {})
        self.direction = direction
        self.components: Json = {
            name: select_direction(schema, direction, components) for name, schema in components.items()
        }
        self._all = components
        self.plain: Json = {name: strip_annotations(schema) for name, schema in self.components.items()}
        self._validators: dict[str, Any] = {}
        self._merged: dict[str, Any] = {}

    @cached_property
    def examples(self) -> ExampleGenerator:
        """The generator of values of these schemas."""
        return ExampleGenerator(self.resolve)

    @cached_property
    def mismatches(self) -> MismatchFinder:
        """The finder of reasons why these schemas reject a value."""
        return MismatchFinder(self.plain, self.is_valid)

    def select(self, schema: Any) -> Any:
        """Return a schema of the document as the direction sees it."""
        return select_direction(schema, self.direction, self._all)

    def resolve(self, target: str) -> Any:
        """Return the plain schema of a component, by a reference to it."""
        return self.plain.get(target.rpartition("/")[2], True)

    def merge(self, schema: Any) -> Any:
        """Return a plain schema merged with all that it refers to; False if no value fits."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self._merged:
            self._merged[key] = merge_conjuncts(list_conjuncts(schema, self.resolve))
        return self._merged[key]

    def is_valid(self, schema: Any, value: Any) -> bool:
        """Report whether a plain schema accepts a value; formats and encodings count."""
        return bool(self.validator(schema).is_valid(value))

    def validator(self, schema: Any) -> Any:
        """Create a validator of a plain schema and of all that it refers to."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            needed = {name: assert_encodings(self.plain.get(name, True)) for name in self.collect_references(schema)}
            root = assert_encodings(schema)
            document = {"allOf": [root], "components": {"schemas": needed}}
            self._validators[key] = jsonschema_rs.Draft202012Validator(document, validate_formats=True, formats=FORMATS)
        return self._validators[key]

    def collect_references(self, schema: Any) -> set[str]:
        """Return the names of all components that a schema refers to, directly or not."""
        names: set[str] = set()
        todo = list(list_references(schema))
        while todo:
            name = todo.pop()
            if name not in names:
                names.add(name)
                todo += list_references(self.plain.get(name))
        return names

    def union_members(self, schema: Any) -> set[str]:
        """Return the named objects that share a union.

        An open object among them lets the union accept any object. Readers know which member to expect, so each member
        is compared on its own.
        """
        nodes = [
            schema,
            *(self.components.get(name, {}) for name in self.collect_references(strip_annotations(schema))),
        ]
        names = {name for node in nodes for name in _union_members(node)}
        return {name for name in names if self._is_object(name)}

    def declared_names(self, schema: Any) -> set[str]:
        """Return the names of all properties that a schema declares, also in the schemas that it combines."""
        names: set[str] = set()
        todo, seen = [schema], set()
        while todo:
            part = todo.pop()
            if not isinstance(part, dict):
                continue
            names |= {*part.get("properties", {}), *part.get("required", [])}
            if "$ref" in part and part["$ref"] not in seen:
                seen.add(part["$ref"])
                todo.append(self.resolve(part["$ref"]))
            todo += [member for key in ("anyOf", "oneOf", "allOf") for member in part.get(key, [])]
            todo += [part.get(key) for key in ("if", "then", "else")]
            todo += part.get("dependentSchemas", {}).values()
        return names

    def _is_object(self, name: str) -> bool:
        merged = self.merge({"$ref": f"#/components/schemas/{name}"})
        return isinstance(merged, dict) and ("properties" in merged or merged["type"] == ["object"])


class Equality:
    """Equality of schemas of two documents, whatever their components are called."""

    def __init__(self, first: Json, second: Json) -> None:
        """Initialize with the components of both documents."""
        self._first, self._second = first, second
        self._equal_names: set[str] = set()
        changed = {
            name for name in first.keys() | second.keys() if not exactly_equal(first.get(name), second.get(name))
        }
        users: dict[str, set[str]] = {}
        for name, schema in first.items():
            for target in list_references(schema):
                users.setdefault(target, set()).add(name)
        todo = list(changed)
        while todo:
            for user in users.get(todo.pop(), ()):
                if user not in changed:
                    changed.add(user)
                    todo.append(user)
        self.unchanged = frozenset(first.keys() - changed)
        self._known: dict[tuple[str, str], bool] = {}

    def is_equal(self, first: Any, second: Any) -> bool:
        """Report whether two schemas are written the same, apart from order and names of components."""
        if first == second and all(name in self.unchanged for name in list_references(first)):
            return exactly_equal(first, second)
        return self._compare(first, second, frozenset())

    def _compare(self, first: Any, second: Any, assumed: frozenset[tuple[str, str]]) -> bool:
        if isinstance(first, dict) and isinstance(second, dict):
            if first.keys() != second.keys():
                return False
            return all(self._entries(key, item, second[key], assumed) for key, item in first.items())
        if isinstance(first, list) and isinstance(second, list):
            return len(first) == len(second) and all(
                self._compare(item, other, assumed) for item, other in zip(first, second, strict=True)
            )
        return exactly_equal(first, second)

    def _entries(self, key: str, first: Any, second: Any, assumed: frozenset[tuple[str, str]]) -> bool:
        if key == "$ref" and isinstance(first, str) and isinstance(second, str):
            pair = (first.rpartition("/")[2], second.rpartition("/")[2])
            if pair in assumed or (pair[0] == pair[1] and pair[0] in self.unchanged):
                return True
            if pair not in self._known:
                parts = self._first.get(pair[0]), self._second.get(pair[1])
                is_equal = self._compare(*parts, assumed | {pair})
                if assumed and is_equal:
                    return True  # it may rest on an assumption, so it is not kept
                self._known[pair] = is_equal
            return self._known[pair]
        if key in VALUE_KEYS or key == "type":
            return _same_values(first, second) if key != "const" else exactly_equal(first, second)
        if key in UNORDERED_KEYS and isinstance(first, list) and isinstance(second, list):
            rest = list(second)
            for item in first:
                index = next((i for i, other in enumerate(rest) if self._compare(item, other, assumed)), None)
                if index is None:
                    return False
                del rest[index]
            return not rest
        return self._compare(first, second, assumed)


def list_references(node: Any) -> Iterator[str]:
    """Yield the names of the components that a schema refers to by itself."""
    if isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str):
            yield target.rpartition("/")[2]
        for key, item in node.items():
            if key not in VALUE_KEYS and key not in ("default", "example", "examples"):
                yield from list_references(item)
    elif isinstance(node, list):
        for item in node:
            yield from list_references(item)


def assert_encodings(node: Any) -> Any:
    """Return a plain schema for validators, with a format for each encoding of texts."""
    if isinstance(node, list):
        return [assert_encodings(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {
        key: item
        if key in VALUE_KEYS
        else {name: assert_encodings(member) for name, member in item.items()}
        if key in NESTED_MAPS and isinstance(item, dict)
        else assert_encodings(item)
        for key, item in node.items()
    }
    if node.get("contentEncoding") in ("base64", "base64url"):
        result["allOf"] = [*result.get("allOf", []), {"format": f"x-{node['contentEncoding']}"}]
    return result


def exactly_equal(first: Any, second: Any) -> bool:
    """Report whether two JSON values are written the same; 1, 1.0 and true differ."""
    return first is second or json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _same_values(first: Any, second: Any) -> bool:
    sides = [
        {json.dumps(item, sort_keys=True) for item in (side if isinstance(side, list) else [side])}
        for side in (first, second)
    ]
    return sides[0] == sides[1]


def _union_members(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        members = [
            member["$ref"]
            for key in ("anyOf", "oneOf")
            if isinstance(node.get(key), list)
            for member in node[key]
            if isinstance(member, dict) and "$ref" in member
        ]
        if len(members) > 1:
            yield from (target.rpartition("/")[2] for target in members)
        for item in node.values():
            yield from _union_members(item)
    elif isinstance(node, list):
        for item in node:
            yield from _union_members(item)
