"""Why a schema refuses a value, at the place and in the words of the contract."""

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

OMITTED = "leaving it out"
UNKNOWN = "a property of this name"


@dataclass(frozen=True)
class Mismatch:
    """One thing that a schema does not take: where, by component and property, and what."""

    where: str
    what: str


class MismatchFinder:
    """Finds the faults of values under the schemas of a document."""

    def __init__(self, document: Json) -> None:
        self._schemas: Json = document.get("components", {}).get("schemas", {})

    def find(self, schema: Any, value: Any, where: str = "") -> list[Mismatch]:
        """What is wrong with a value, nothing when it is taken; of a union the faults of the member meant."""
        if schema is False:
            return [Mismatch(where, f"the value {_short(value)}")]
        if not isinstance(schema, dict):
            return []
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            target = self._schemas.get(name, {})
            return self.find(target, value, name if not where or _has_own_place(target, value) else where)
        found = [error for part in schema.get("allOf", []) for error in self.find(part, value, where)]
        for key in ("anyOf", "oneOf"):
            if key in schema:
                found += self._union(schema[key], value, where)
        if "const" in schema and not _same(schema["const"], value):
            found.append(Mismatch(where, f"the value {_short(value)} in the place of {_short(schema['const'])}"))
        if "enum" in schema and not any(_same(each, value) for each in schema["enum"]):
            found.append(Mismatch(where, f"the value {_short(value)}"))
        kinds = schema.get("type")
        if kinds and not any(_is(kind, value) for kind in (kinds if isinstance(kinds, list) else [kinds])):
            return [*found, Mismatch(where, f"{_kind(value)} in the place of {_either(kinds)}")]
        return found + self._inner(schema, value, where)

    def _inner(self, schema: Json, value: Any, where: str) -> list[Mismatch]:
        if isinstance(value, dict):
            return self._object(schema, value, where)
        if isinstance(value, list):
            return self._array(schema, value, where)
        if isinstance(value, str):
            return list(_length(schema, len(value), "Length", where))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return list(_bounds(schema, value, where))
        return []

    def _object(self, schema: Json, value: Json, where: str) -> list[Mismatch]:
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        missing = [name for name in schema.get("required", []) if name not in value]
        found = [Mismatch(_join(where, name), OMITTED) for name in missing]
        for name, item in value.items():
            if name in properties:
                found += self.find(properties[name], item, _join(where, name))
            elif more is False and name == UNKNOWN_PROPERTY:
                found.append(Mismatch(where, "an unknown property"))
            elif more is False:
                found.append(Mismatch(_join(where, name), UNKNOWN))
            else:
                found += self.find(more, item, f"{where}[*]")
        return found

    def _array(self, schema: Json, value: list[Any], where: str) -> list[Mismatch]:
        heads, rest = schema.get("prefixItems", []), schema.get("items", True)
        found = list(_length(schema, len(value), "Items", where))
        for index, item in enumerate(value):
            if index < len(heads):
                found += self.find(heads[index], item, f"{where}[{index}]")
            elif rest is False:
                found.append(Mismatch(where, f"more than {len(heads)} items"))
            else:
                found += self.find(rest, item, f"{where}[]")
        return found

    def _union(self, members: list[Any], value: Any, where: str) -> list[Mismatch]:
        tries = [self.find(member, value, where) for member in members]
        if not all(tries):
            return []
        plain = [self._followed(member) for member in members]
        near = [errors for member, errors in zip(plain, tries, strict=True) if _is_meant(member, value)]
        best = min(near, key=len, default=[])
        # What lacks some properties and has others besides was meant as something else.
        if best and not {OMITTED, UNKNOWN} <= {error.what for error in best}:
            return best
        if isinstance(value, dict):
            return [Mismatch(where, "this kind of object")]
        listed = any("const" in member or "enum" in member for member in plain)
        return [Mismatch(where, f"the value {_short(value)}" if listed and isinstance(value, str) else _kind(value))]

    def _followed(self, schema: Any) -> Json:
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self._schemas.get(schema["$ref"].rpartition("/")[2], {})
        return schema if isinstance(schema, dict) else {}


def _is_meant(member: Json, value: Any) -> bool:
    """Whether a value looks like an attempt at this member of a union: its tag fits, or other properties do."""
    if not isinstance(value, dict):
        return ("enum" in member or isinstance(value, list)) and _is(member.get("type"), value)
    properties = member.get("properties", {})
    tags = {name: detail["const"] for name, detail in properties.items() if "const" in (detail or {})}
    if tags.keys() & value.keys():
        return all(value.get(name, const) == const for name, const in tags.items())
    return bool(value.keys() & properties.keys())


def _has_own_place(schema: Json, value: Any) -> bool:
    """Whether a fault is told by the name of the component, not by that of the property that it is the type of."""
    is_object = "properties" in schema and isinstance(value, dict)
    return is_object or "anyOf" in schema or "oneOf" in schema or ("enum" in schema and isinstance(value, str))


def _bounds(schema: Json, value: float, where: str) -> list[Mismatch]:
    tests: list[tuple[str, str, Callable[[float, float], bool]]] = [
        ("minimum", "under", operator.lt),
        ("maximum", "over", operator.gt),
        ("exclusiveMinimum", "not over", operator.le),
        ("exclusiveMaximum", "not under", operator.ge),
    ]
    return [
        Mismatch(where, f"a number {word} {schema[key]}")
        for key, word, refuses in tests
        if key in schema and refuses(value, schema[key])
    ]


def _length(schema: Json, size: int, unit: str, where: str) -> list[Mismatch]:
    least, most = schema.get(f"min{unit}"), schema.get(f"max{unit}")
    what = {"Length": "characters", "Items": "items"}[unit]
    if least is not None and size < least:
        return [Mismatch(where, f"fewer than {least} {what}")]
    return [Mismatch(where, f"more than {most} {what}")] if most is not None and size > most else []


def _is(kind: Any, value: Any) -> bool:
    if kind == "integer":
        return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, KINDS.get(str(kind), ()))


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _kind(value: Any) -> str:
    if isinstance(value, float) and not value.is_integer():
        return "a fraction"
    return next(kind for kind in (*KINDS, "integer", "number") if _is(kind, value))


def _either(kinds: Any) -> str:
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}..."


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
