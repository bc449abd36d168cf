"""Reasons why a schema rejects a value, with place and names of the contract."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .examples import UNKNOWN_PROPERTY

Json = dict[str, Any]

KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
}

OMITTED = "omitting it"
UNKNOWN = "a property of this name"


@dataclass(frozen=True)
class Mismatch:
    """One thing that a schema rejects: its place, by component and property, and a description."""

    where: str
    what: str


class MismatchFinder:
    """Finder of the mismatches between values and the schemas of a document."""

    def __init__(self, document: Json) -> None:
        """Initialize with the document that defines the components."""
        self._schemas: Json = document.get("components", {}).get("schemas", {})

    def find(self, schema: Any, value: Any, where: str = "") -> list[Mismatch]:
        """Return the mismatches of a value, or an empty list if the schema accepts it.

        For a union they are those of the member that the value was meant for.
        """
        if schema is False:
            return [Mismatch(where, f"the value {_shorten(value)}")]
        if not isinstance(schema, dict):
            return []
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            target = self._schemas.get(name, {})
            return self.find(target, value, name if not where or _has_own_place(target, value) else where)
        mismatches = [error for part in schema.get("allOf", []) for error in self.find(part, value, where)]
        for key in ("anyOf", "oneOf"):
            if key in schema:
                mismatches += self._check_union(schema[key], value, where)
        if "const" in schema and not _is_equal(schema["const"], value):
            mismatches.append(Mismatch(where, f"the value {_shorten(value)} instead of {_shorten(schema['const'])}"))
        if "enum" in schema and not any(_is_equal(allowed, value) for allowed in schema["enum"]):
            mismatches.append(Mismatch(where, f"the value {_shorten(value)}"))
        kinds = schema.get("type")
        if kinds and not any(_is_type(kind, value) for kind in (kinds if isinstance(kinds, list) else [kinds])):
            return [*mismatches, Mismatch(where, f"{_type_name(value)} instead of {_join_types(kinds)}")]
        return mismatches + self._check_content(schema, value, where)

    def _check_content(self, schema: Json, value: Any, where: str) -> list[Mismatch]:
        if isinstance(value, dict):
            return self._check_object(schema, value, where)
        if isinstance(value, list):
            return self._check_array(schema, value, where)
        if isinstance(value, str):
            return list(_check_length(schema, len(value), "Length", where))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return list(_check_bounds(schema, value, where))
        return []

    def _check_object(self, schema: Json, value: Json, where: str) -> list[Mismatch]:
        properties, additional = schema.get("properties", {}), schema.get("additionalProperties", True)
        missing = [name for name in schema.get("required", []) if name not in value]
        mismatches = [Mismatch(_join(where, name), OMITTED) for name in missing]
        for name, item in value.items():
            if name in properties:
                mismatches += self.find(properties[name], item, _join(where, name))
            elif additional is False and name == UNKNOWN_PROPERTY:
                mismatches.append(Mismatch(where, "an unknown property"))
            elif additional is False:
                mismatches.append(Mismatch(_join(where, name), UNKNOWN))
            else:
                mismatches += self.find(additional, item, f"{where}[*]")
        return mismatches

    def _check_array(self, schema: Json, value: list[Any], where: str) -> list[Mismatch]:
        prefix, item_schema = schema.get("prefixItems", []), schema.get("items", True)
        mismatches = list(_check_length(schema, len(value), "Items", where))
        for index, item in enumerate(value):
            if index < len(prefix):
                mismatches += self.find(prefix[index], item, f"{where}[{index}]")
            elif item_schema is False:
                mismatches.append(Mismatch(where, f"more than {len(prefix)} items"))
            else:
                mismatches += self.find(item_schema, item, f"{where}[]")
        return mismatches

    def _check_union(self, members: list[Any], value: Any, where: str) -> list[Mismatch]:
        attempts = [self.find(member, value, where) for member in members]
        if not all(attempts):
            return []
        followed = [self._follow(member) for member in members]
        meant = [errors for member, errors in zip(followed, attempts, strict=True) if _is_meant(member, value)]
        best = min(meant, key=len, default=[])
        # A value that lacks some properties and has unknown ones was meant as something else.
        if best and not {OMITTED, UNKNOWN} <= {error.what for error in best}:
            return best
        if isinstance(value, dict):
            return [Mismatch(where, "this kind of object")]
        listed = any("const" in member or "enum" in member for member in followed)
        return [
            Mismatch(where, f"the value {_shorten(value)}" if listed and isinstance(value, str) else _type_name(value))
        ]

    def _follow(self, schema: Any) -> Json:
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self._schemas.get(schema["$ref"].rpartition("/")[2], {})
        return schema if isinstance(schema, dict) else {}


def _is_meant(member: Json, value: Any) -> bool:
    """Report whether a value looks like an attempt at this union member: its tag matches, or else its properties."""
    if not isinstance(value, dict):
        return ("enum" in member or isinstance(value, list)) and _is_type(member.get("type"), value)
    properties = member.get("properties", {})
    tags = {name: detail["const"] for name, detail in properties.items() if "const" in (detail or {})}
    if tags.keys() & value.keys():
        return all(value.get(name, const) == const for name, const in tags.items())
    return bool(value.keys() & properties.keys())


def _has_own_place(schema: Json, value: Any) -> bool:
    """Report whether an error names the component instead of the property that has it as type."""
    is_object = "properties" in schema and isinstance(value, dict)
    return is_object or "anyOf" in schema or "oneOf" in schema or ("enum" in schema and isinstance(value, str))


def _check_bounds(schema: Json, value: float, where: str) -> list[Mismatch]:
    checks: list[tuple[str, str, Callable[[float, float], bool]]] = [
        ("minimum", "below", operator.lt),
        ("maximum", "above", operator.gt),
        ("exclusiveMinimum", "not above", operator.le),
        ("exclusiveMaximum", "not below", operator.ge),
    ]
    return [
        Mismatch(where, f"a number {relation} {schema[key]}")
        for key, relation, violates in checks
        if key in schema and violates(value, schema[key])
    ]


def _check_length(schema: Json, size: int, unit: str, where: str) -> list[Mismatch]:
    minimum, maximum = schema.get(f"min{unit}"), schema.get(f"max{unit}")
    noun = {"Length": "characters", "Items": "items"}[unit]
    if minimum is not None and size < minimum:
        return [Mismatch(where, f"fewer than {minimum} {noun}")]
    return [Mismatch(where, f"more than {maximum} {noun}")] if maximum is not None and size > maximum else []


def _is_type(kind: Any, value: Any) -> bool:
    if kind == "integer":
        return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, KINDS.get(str(kind), ()))


def _is_equal(first: Any, second: Any) -> bool:
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)


def _type_name(value: Any) -> str:
    if isinstance(value, float) and not value.is_integer():
        return "a fraction"
    return next(kind for kind in (*KINDS, "integer", "number") if _is_type(kind, value))


def _join_types(kinds: Any) -> str:
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}..."


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
