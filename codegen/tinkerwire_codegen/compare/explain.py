"""Reasons why a schema rejects a value, with place and names of the contract."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .examples import UNKNOWN_PROPERTY
from .merging import matches

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
VALUE = "the value"


@dataclass(frozen=True)
class Mismatch:
    """One thing that a schema rejects: its place, by component and property, a description, and the keyword."""

    where: str
    what: str
    keyword: str = ""


class MismatchFinder:
    """Finder of the mismatches between values and the schemas of a document."""

    def __init__(self, schemas: Json, is_valid: Callable[[Any, Any], bool]) -> None:
        """Initialize with the components, and a function that validates a value by a schema."""
        self._schemas, self._is_valid = schemas, is_valid

    def find(self, schema: Any, value: Any, where: str = "") -> list[Mismatch]:
        """Return the mismatches of a value, or an empty list if the schema accepts it.

        For a union they are those of the member that the value was meant for.
        """
        if schema is False:
            return [Mismatch(where, f"the value {_shorten(value)}", "false")]
        if not isinstance(schema, dict):
            return []
        mismatches: list[Mismatch] = []
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            target = self._schemas.get(name, True)
            mismatches += self.find(target, value, name if not where or _has_own_place(target, value) else where)
        mismatches += [error for part in schema.get("allOf", []) for error in self.find(part, value, where)]
        for key in ("anyOf", "oneOf"):
            if key in schema:
                mismatches += self._check_union(schema[key], value, where, key)
        kinds = schema.get("type")
        if kinds and not any(_is_type(kind, value) for kind in (kinds if isinstance(kinds, list) else [kinds])):
            return [*mismatches, Mismatch(where, f"{_type_name(value)} instead of {_join_types(kinds)}", "type")]
        if "const" in schema and not _is_equal(schema["const"], value):
            text = f"{_describe_unlisted(value, [schema['const']])} instead of {_shorten(schema['const'])}"
            mismatches.append(Mismatch(where, text, "const"))
        if "enum" in schema and not any(_is_equal(allowed, value) for allowed in schema["enum"]):
            mismatches.append(Mismatch(where, _describe_unlisted(value, schema["enum"]), "enum"))
        return mismatches + self._check_conditions(schema, value, where) + self._check_content(schema, value, where)

    def _check_conditions(self, schema: Json, value: Any, where: str) -> list[Mismatch]:
        mismatches = []
        if "not" in schema and self._is_valid(schema["not"], value):
            mismatches.append(Mismatch(where, "a value that is excluded", "not"))
        if "if" in schema:
            branch = "then" if self._is_valid(schema["if"], value) else "else"
            found = self.find(schema.get(branch, True), value, where)
            mismatches += [Mismatch(error.where, f"{error.what} under a condition", "if") for error in found]
        for trigger, part in schema.get("dependentSchemas", {}).items():
            if isinstance(value, dict) and trigger in value:
                found = self.find(part, value, where)
                text = f"beside {trigger}"
                mismatches += [Mismatch(error.where, f"{error.what} {text}", "dependentSchemas") for error in found]
        return mismatches

    def _check_content(self, schema: Json, value: Any, where: str) -> list[Mismatch]:
        if isinstance(value, dict):
            return self._check_object(schema, value, where)
        if isinstance(value, list):
            return self._check_array(schema, value, where)
        if isinstance(value, str):
            return self._check_text(schema, value, where)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return list(_check_bounds(schema, value, where))
        return []

    def _check_text(self, schema: Json, value: str, where: str) -> list[Mismatch]:
        mismatches = list(_check_length(schema, len(value), "Length", where))
        if "pattern" in schema and not self._is_valid({"pattern": schema["pattern"]}, value):
            mismatches.append(Mismatch(where, f"text that does not match {schema['pattern']}", "pattern"))
        for key, text in (("format", "of the format"), ("contentEncoding", "encoded as")):
            if key in schema and not self._is_valid({key: schema[key]}, value):
                mismatches.append(Mismatch(where, f"text that is not {text} {schema[key]}", key))
        return mismatches

    def _check_object(self, schema: Json, value: Json, where: str) -> list[Mismatch]:
        properties, additional = schema.get("properties", {}), schema.get("additionalProperties", True)
        patterns = schema.get("patternProperties", {})
        missing = [name for name in schema.get("required", []) if name not in value]
        mismatches = [Mismatch(_join(where, name), OMITTED, "required") for name in missing]
        mismatches += _check_length(schema, len(value), "Properties", where)
        for name, item in value.items():
            matched = [part for pattern, part in patterns.items() if matches(pattern, name)]
            mismatches += [error for part in matched for error in self.find(part, item, f"{where}[*]")]
            if "propertyNames" in schema and not self._is_valid(schema["propertyNames"], name):
                mismatches.append(Mismatch(where, f"the property name {_shorten(name)}", "propertyNames"))
            if name in properties and properties[name] is not False:
                mismatches += self.find(properties[name], item, _join(where, name))
            elif matched and name not in properties:
                continue
            elif (additional is False or name in properties) and not name.startswith(UNKNOWN_PROPERTY):
                mismatches.append(Mismatch(_join(where, name), UNKNOWN, "additionalProperties"))
            elif additional is False:
                mismatches.append(Mismatch(where, "an unknown property", "additionalProperties"))
            else:
                mismatches += self.find(additional, item, f"{where}[*]")
        for trigger, names in schema.get("dependentRequired", {}).items():
            absent = [name for name in names if trigger in value and name not in value]
            mismatches += [
                Mismatch(_join(where, name), f"{OMITTED} beside {trigger}", "dependentRequired") for name in absent
            ]
        return mismatches

    def _check_array(self, schema: Json, value: list[Any], where: str) -> list[Mismatch]:
        prefix, item_schema = schema.get("prefixItems", []), schema.get("items", True)
        mismatches = list(_check_length(schema, len(value), "Items", where))
        for index, item in enumerate(value):
            if index < len(prefix):
                mismatches += self.find(prefix[index], item, f"{where}[{index}]")
            elif item_schema is False:
                mismatches.append(Mismatch(where, f"more than {len(prefix)} items", "items"))
            else:
                mismatches += self.find(item_schema, item, f"{where}[]")
        if schema.get("uniqueItems") and not self._is_valid({"uniqueItems": True}, value):
            mismatches.append(Mismatch(where, "an array with repeated items", "uniqueItems"))
        if "contains" in schema:
            number = sum(self._is_valid(schema["contains"], item) for item in value)
            if number < schema.get("minContains", 1):
                mismatches.append(
                    Mismatch(where, "an array with too few of the items that it must contain", "contains")
                )
            if number > schema.get("maxContains", number):
                text = "an array with too many of the items that it may contain"
                mismatches.append(Mismatch(where, text, "maxContains"))
        return mismatches

    def _check_union(self, members: list[Any], value: Any, where: str, keyword: str) -> list[Mismatch]:
        accepting = sum(self._is_valid(member, value) for member in members)
        if accepting > 1 and keyword == "oneOf":
            return [Mismatch(where, f"a value of {accepting} members of the union", keyword)]
        if accepting:
            return []
        members = list(self._expand(members, 0))
        attempts = [self.find(member, value, where) for member in members]
        followed = [self._follow(member) for member in members]
        meant = [errors for member, errors in zip(followed, attempts, strict=True) if _is_meant(member, value)]
        if not meant:
            fitting = [errors for errors in attempts if not any(error.keyword == "type" for error in errors)]
            meant = fitting if len(fitting) == 1 and not isinstance(value, dict) else []
        best = min(meant, key=_vagueness, default=[])
        # A value that lacks some properties and has unknown ones was meant as something else.
        if best and not {OMITTED, UNKNOWN} <= {error.what for error in best}:
            return best
        if isinstance(value, dict):
            return [Mismatch(where, "this kind of object", keyword)]
        listed = any("const" in member or "enum" in member for member in followed)
        text = f"the value {_shorten(value)}" if listed and isinstance(value, str) else _type_name(value)
        return [Mismatch(where, text, keyword)]

    def _expand(self, members: list[Any], depth: int) -> Iterator[Any]:
        """Yield the members of a union, and instead of those that are unions, their members."""
        for member in members:
            followed = self._follow(member)
            inside = followed.get("anyOf", followed.get("oneOf"))
            if inside is None or "properties" in followed or depth > 3:
                yield member
            else:
                yield from self._expand(inside, depth + 1)

    def _follow(self, schema: Any) -> Json:
        for _ in range(10):
            if not isinstance(schema, dict) or "$ref" not in schema:
                break
            schema = self._schemas.get(schema["$ref"].rpartition("/")[2], {})
        return schema if isinstance(schema, dict) else {}


def _vagueness(errors: list[Mismatch]) -> tuple[int, int]:
    """Return a measure of how little errors explain: those of a union that no member fits explain least."""
    return sum(error.keyword in ("anyOf", "oneOf") for error in errors), len(errors)


def _is_meant(member: Json, value: Any) -> bool:
    """Report whether a value looks like an attempt at this union member: its tag matches, or else its properties."""
    if not isinstance(value, dict):
        kinds = member.get("type")
        is_type = any(_is_type(kind, value) for kind in (kinds if isinstance(kinds, list) else [kinds]))
        return ("enum" in member or isinstance(value, list)) and is_type
    properties = member.get("properties", {})
    details = {name: detail for name, detail in properties.items() if isinstance(detail, dict)}
    tags = {name: [detail["const"]] for name, detail in details.items() if "const" in detail}
    tags |= {name: detail["enum"] for name, detail in details.items() if len(detail.get("enum", [])) == 1}
    if tags.keys() & value.keys():
        return all(value.get(name, tag[0]) == tag[0] for name, tag in tags.items())
    return bool(value.keys() & properties.keys())


def _has_own_place(schema: Json, value: Any) -> bool:
    """Report whether an error names the component instead of the property that has it as type."""
    if not isinstance(schema, dict):
        return False
    is_object = "properties" in schema and isinstance(value, dict)
    return is_object or "anyOf" in schema or "oneOf" in schema or ("enum" in schema and isinstance(value, str))


def _check_bounds(schema: Json, value: float, where: str) -> list[Mismatch]:
    checks: list[tuple[str, str, Callable[[float, float], bool]]] = [
        ("minimum", "below", operator.lt),
        ("maximum", "above", operator.gt),
        ("exclusiveMinimum", "not above", operator.le),
        ("exclusiveMaximum", "not below", operator.ge),
    ]
    mismatches = [
        Mismatch(where, f"a number {relation} {schema[key]}", key)
        for key, relation, violates in checks
        if key in schema and violates(value, schema[key])
    ]
    if "multipleOf" in schema and (Fraction(str(value)) / Fraction(str(schema["multipleOf"]))).denominator != 1:
        mismatches.append(Mismatch(where, f"a number that is not a multiple of {schema['multipleOf']}", "multipleOf"))
    return mismatches


def _check_length(schema: Json, size: int, unit: str, where: str) -> list[Mismatch]:
    minimum, maximum = schema.get(f"min{unit}"), schema.get(f"max{unit}")
    noun = {"Length": "characters", "Items": "items", "Properties": "properties"}[unit]
    if minimum is not None and size < minimum:
        return [Mismatch(where, f"fewer than {minimum} {noun}", f"min{unit}")]
    too_long = maximum is not None and size > maximum
    return [Mismatch(where, f"more than {maximum} {noun}", f"max{unit}")] if too_long else []


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


def _describe_unlisted(value: Any, listed: list[Any]) -> str:
    """Describe a value that is not listed, by its type if no listed value has that type."""
    has_type = any(_type_name(item) == _type_name(value) for item in listed)
    return f"{VALUE} {_shorten(value)}" if has_type else _type_name(value)


def _join_types(kinds: Any) -> str:
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}..."


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
