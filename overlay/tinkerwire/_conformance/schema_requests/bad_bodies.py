"""Bodies that a schema rejects, each made from a valid one by a single change.

The changes follow from the schema alone, so that a failure names one field and one error. Random data would repeat
them, and would not show which error a server did not notice.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import attrs
import jsonschema_rs
import orjson

from ..._server.http.openapi import Document, resolve_reference

WRONG_VALUES: tuple[Any, ...] = ({"wrong": "type"}, "wrong type", ["wrong type"])
"""Candidates for a value of the wrong type. Servers may read the text 5 as a number, so no candidate looks like one."""
MAX_EXTRA = 1000
"""Entries or characters of the largest value above a limit."""
AMOUNTS = frozenset({"max_tokens", "num_samples"})
"""Fields that set how much a server computes: one that takes a number of 64 bits would serve nobody else."""
LARGEST_JSON_INTEGER = 2**64 - 1
Path = tuple[str | int, ...]


@attrs.frozen
class BadBody:
    """A body with one error."""

    error: str
    """The error in words, such as ``model_id is missing``."""
    body: Any


class BadBodyMaker:
    """Maker of bodies with one error each, from valid bodies.

    Args:
        document: the contract of one wire version.
        schema: schema of the body of one operation.
    """

    def __init__(self, document: Document, schema: Document) -> None:
        self._document = document
        self._schema = schema
        self._validators: dict[int, tuple[Document, jsonschema_rs.Validator]] = {}
        self._is_valid = self._validator(schema).is_valid

    def missing(self, body: Any) -> Iterator[BadBody]:
        """Yield bodies without one required field."""
        for path, schema, value in self._places(self._schema, body, ()):
            for name in _required(schema):
                if isinstance(value, dict) and name in value:
                    changed = copy.deepcopy(body)
                    del _get(changed, path)[name]
                    yield from self._bad(f"{_text((*path, name))} is missing", changed)

    def wrong_types(self, body: Any) -> Iterator[BadBody]:
        """Yield bodies with one value of a wrong type, and with null for a required value."""
        required = {
            (*path, name) for path, schema, _ in self._places(self._schema, body, ()) for name in _required(schema)
        }
        for path, schema, _ in self._places(self._schema, body, ()):
            if not path:
                continue
            is_valid = self._validator(schema).is_valid
            wrong = next((value for value in WRONG_VALUES if not is_valid(value)), None)
            if wrong is not None:
                yield from self._bad(f"{_text(path)} is {orjson.dumps(wrong).decode()}", _changed(body, path, wrong))
            if path in required:
                yield from self._bad(f"{_text(path)} is null", _changed(body, path, None))

    def out_of_bounds(self, body: Any) -> Iterator[BadBody]:
        """Yield bodies with one value beyond a limit, or none of an enumeration."""
        for path, schema, value in self._places(self._schema, body, ()):
            yield from self._beyond(body, path, schema)
            for name, property_schema in schema.get("properties", {}).items() if isinstance(value, dict) else ():
                if name not in value:
                    yield from self._beyond(body, (*path, name), property_schema)

    def _beyond(self, body: Any, path: Path, schema: Document) -> Iterator[BadBody]:
        for branch in self._branches(schema):
            if "enum" in branch:
                yield from self._bad(f"{_text(path)} is no-such-value", _changed(body, path, "no-such-value"))
            for key, offset in (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)):
                if offset >= 0 and path and path[-1] in AMOUNTS:
                    continue
                if key in branch and -(2**63) <= branch[key] + offset <= LARGEST_JSON_INTEGER:
                    limit = branch[key] + offset
                    yield from self._bad(f"{_text(path)} is {limit}", _changed(body, path, limit))
            for key, empty in (("minItems", []), ("minLength", "")):
                if branch.get(key, 0) > 0:
                    yield from self._bad(f"{_text(path)} is empty", _changed(body, path, empty))
            for key, one in (("maxItems", ["a"]), ("maxLength", "a")):
                if branch.get(key, MAX_EXTRA) < MAX_EXTRA:
                    yield from self._bad(f"{_text(path)} is too long", _changed(body, path, one * (branch[key] + 1)))

    def _places(self, schema: Document, value: Any, path: Path) -> Iterator[tuple[Path, Document, Any]]:
        """Yield each place of a value, its schema and its value, from the outside to the inside."""
        branches = self._branches(schema)
        yield path, branches[0] if len(branches) == 1 else schema, value
        for branch in branches:
            if not self._validator(branch).is_valid(value):
                continue
            if isinstance(value, dict):
                further = branch.get("additionalProperties")
                for name in value:
                    inner = branch.get("properties", {}).get(name, further)
                    # The server may ignore the tag of a request: its path has the same meaning.
                    if isinstance(inner, dict) and "const" not in resolve_reference(self._document, inner):
                        yield from self._places(inner, value[name], (*path, name))
            elif isinstance(value, list) and value and isinstance(branch.get("items"), dict):
                yield from self._places(branch["items"], value[0], (*path, 0))
            return

    def _branches(self, schema: Document) -> list[Document]:
        """Return the alternatives of a schema, without references."""
        schema = resolve_reference(self._document, schema)
        if "anyOf" not in schema:
            return [schema]
        return [branch for option in schema["anyOf"] for branch in self._branches(option)]

    def _validator(self, schema: Document) -> jsonschema_rs.Validator:
        """Return the validator of a part of the schema, compiled once: each one holds all components."""
        if id(schema) not in self._validators:
            validator = jsonschema_rs.Draft202012Validator({**schema, "components": self._document["components"]})
            # The schema is kept, so that its id stays its own.
            self._validators[id(schema)] = (schema, validator)
        return self._validators[id(schema)][1]

    def _bad(self, error: str, body: Any) -> Iterator[BadBody]:
        if not self._is_valid(body):
            yield BadBody(error, body)


def _required(schema: Document) -> list[str]:
    names: list[str] = schema.get("required", [])
    return names


def _text(path: Path) -> str:
    return ".".join(map(str, path))


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _changed(body: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(body)
    _get(changed, path[:-1])[path[-1]] = value
    return changed
