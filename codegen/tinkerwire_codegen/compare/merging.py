"""Several schemas that all apply to a value, merged into one; the merged schema never rejects what they all accept."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

Json = dict[str, Any]

KINDS = ("null", "boolean", "integer", "fraction", "string", "array", "object")
"""The kinds of values; a number is an integer or a fraction."""

LARGEST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
SMALLEST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
OBJECT_KEYS = ("properties", "patternProperties", "additionalProperties")
ARRAY_KEYS = ("prefixItems", "items")
GROUPS = (
    *(("anyOf",), ("oneOf",), ("not",), ("if", "then", "else"), ("contains", "minContains", "maxContains")),
    *(("pattern",), ("format",), ("contentEncoding",), ("contentMediaType",), ("contentSchema",), ("multipleOf",)),
    *(("propertyNames",), ("dependentRequired",), ("dependentSchemas",), ("dependencies",)),
)
"""Keywords that are kept apart, because two of them cannot be merged; those of one group depend on each other."""

UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


def kinds_of(schema: Any) -> frozenset[str]:
    """Return the kinds of values that a schema without references may accept, by its type, const and enum."""
    if schema is False:
        return frozenset()
    if not isinstance(schema, dict):
        return frozenset(KINDS)
    named = schema.get("type", list(KINDS))
    kinds: set[str] = set()
    for name in named if isinstance(named, list) else [named]:
        kinds |= {"integer", "fraction"} if name == "number" else {str(name)}
    if "const" in schema:
        kinds &= {kind_of(schema["const"])}
    if "enum" in schema:
        kinds &= {kind_of(value) for value in schema["enum"]}
    return frozenset(kinds)


def kind_of(value: Any) -> str:
    """Return the kind of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if float(value).is_integer() else "fraction"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def type_names(kinds: Iterable[str]) -> list[str]:
    """Return the type names of kinds, as a schema has them."""
    kinds = set(kinds)
    if "fraction" in kinds:
        kinds -= {"integer", "fraction"}
        kinds.add("number")
    return sorted(kinds)


def both(*schemas: Any) -> Any:
    """Return the schema that accepts what all of them accept."""
    parts: list[Any] = []
    for schema in schemas:
        nested = schema["allOf"] if isinstance(schema, dict) and schema.keys() == {"allOf"} else [schema]
        parts += [part for part in nested if part is not True and part != {} and part not in parts]
    if False in [part for part in parts if isinstance(part, bool)]:
        return False
    return parts[0] if len(parts) == 1 else {"allOf": parts} if parts else True


def list_conjuncts(schema: Any, resolve: Callable[[str], Any], depth: int = 0) -> list[Any]:
    """Return the schemas without references and allOf that all apply where this one applies."""
    if not isinstance(schema, dict) or depth > 40:
        return [schema] if schema is not True else []
    if any(key in schema for key in UNEVALUATED):
        inner = {key: item for key, item in schema.items() if key not in UNEVALUATED}
        parts = list_conjuncts(inner, resolve, depth + 1)
        # These two look into their neighbours, which must stay with them unless they are simple.
        return [*_evaluate(schema, parts), *parts]
    rest = {key: item for key, item in schema.items() if key not in ("$ref", "allOf")}
    parts = [rest] if rest else []
    if "$ref" in schema:
        parts += list_conjuncts(resolve(schema["$ref"]), resolve, depth + 1)
    for part in schema.get("allOf", []):
        parts += list_conjuncts(part, resolve, depth + 1)
    return parts


def _evaluate(schema: Json, parts: list[Any]) -> list[Any]:
    """Return the schema's unevaluated keywords as keywords of plain objects and arrays, or the schema as it is."""
    combined = {"anyOf", "oneOf", "not", "if", "dependentSchemas", "contains", "$ref", "$dynamicRef", *UNEVALUATED}
    if not all(isinstance(part, dict) and not combined & part.keys() for part in parts):
        return [schema]
    found: Json = {}
    if "unevaluatedProperties" in schema and not any("additionalProperties" in part for part in parts):
        for key in ("properties", "patternProperties"):
            found[key] = {name: True for part in parts for name in part.get(key, {})}
        found["additionalProperties"] = schema["unevaluatedProperties"]
    if "unevaluatedItems" in schema and not any("items" in part for part in parts):
        found["prefixItems"] = [True] * max((len(part.get("prefixItems", [])) for part in parts), default=0)
        found["items"] = schema["unevaluatedItems"]
    return [{key: item for key, item in found.items() if item not in ({}, [])}] if found else []


def merge_conjuncts(parts: list[Any]) -> Any:
    """Merge schemas without references and allOf; False if no value fits.

    The merged schema has a type, and keeps what cannot be merged in its allOf, one group of keywords each.
    """
    merged: Json = {"type": list(type_names(KINDS))}
    kept: list[Json] = []
    for part in parts:
        if part is False:
            return False
        if any(key in part for key in UNEVALUATED):
            kept.append(part)
            continue
        names = type_names(kinds_of({"type": merged["type"]}) & kinds_of({k: part[k] for k in ("type",) if k in part}))
        merged = _merge_pair(merged, part)
        merged["type"] = names
        grouped = {key for group in GROUPS for key in group}
        for group in GROUPS:
            if group[0] in part:
                kept.append({key: part[key] for key in group if key in part})
        known = {"type", "const", "enum", "required", "uniqueItems", *LARGEST, *SMALLEST, *OBJECT_KEYS, *ARRAY_KEYS}
        kept += [{key: item} for key, item in part.items() if key not in known | grouped]
    if "enum" in merged:
        kinds = kinds_of({"type": merged["type"]})
        merged["enum"] = [value for value in merged["enum"] if kind_of(value) in kinds]
    kinds = kinds_of(merged)
    if any("multipleOf" in part and float(part["multipleOf"]).is_integer() for part in kept):
        kinds -= {"fraction"}
    kinds -= _impossible_kinds(merged)
    merged["type"] = type_names(kinds)
    unique = {json.dumps(part, sort_keys=True): part for part in kept}
    if unique:
        merged["allOf"] = list(unique.values())
    return merged if merged["type"] else False


def _impossible_kinds(schema: Json) -> set[str]:
    """Return the kinds for which the bounds of a merged schema leave no value."""
    low, above = schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf)
    high, below = schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf)
    is_empty = max(low, above) > min(high, below) or above >= min(high, below) or max(low, above) >= below
    impossible = {"integer", "fraction"} if is_empty else set()
    least = {"Properties": len(schema.get("required", []))}
    for kind, unit in (("string", "Length"), ("array", "Items"), ("object", "Properties")):
        minimum = max(schema.get(f"min{unit}", 0), least.get(unit, 0))
        if minimum > schema.get(f"max{unit}", math.inf):
            impossible.add(kind)
    return impossible


def applicable(schema: Json, name: str) -> list[Any]:
    """Return the schemas that a property of this name has to fit."""
    found = [schema["properties"][name]] if name in schema.get("properties", {}) else []
    found += [item for pattern, item in schema.get("patternProperties", {}).items() if matches(pattern, name)]
    return found or [schema.get("additionalProperties", True)]


def property_schema(schema: Json, name: str) -> Any:
    """Return the schema of a property, by its name."""
    return both(*applicable(schema, name))


def item_schema(schema: Json, index: int) -> Any:
    """Return the schema of an item, by its index."""
    prefix = schema.get("prefixItems", [])
    return prefix[index] if index < len(prefix) else schema.get("items", True)


def matches(pattern: str, text: str) -> bool:
    """Report whether a pattern is found in a text; a pattern that Python cannot read matches nothing."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False


def may_have(schema: Json, name: str) -> bool:
    """Report whether an object of a merged schema may have a property; an open schema adds only unknown names."""
    is_known = name in schema.get("properties", {}) or name in schema.get("required", [])
    is_known = is_known or any(matches(pattern, name) for pattern in schema.get("patternProperties", {}))
    rest = schema.get("additionalProperties", True)
    return property_schema(schema, name) is not False if is_known else rest not in (True, False, {})


def longest_array(schema: Json) -> float:
    """Return the number of items that an array of a merged schema may have."""
    longest: float = schema.get("maxItems", float("inf"))
    return min(longest, len(schema.get("prefixItems", []))) if schema.get("items") is False else longest


def _merge_pair(first: Json, second: Json) -> Json:
    merged = dict(first)
    for key, item in second.items():
        if key in LARGEST:
            merged[key] = max(first.get(key, item), item)
        elif key in SMALLEST:
            merged[key] = min(first.get(key, item), item)
        elif key == "required":
            merged[key] = [*first.get(key, []), *(name for name in item if name not in first.get(key, []))]
        elif key == "uniqueItems":
            merged[key] = bool(item) or first.get(key, False)
        elif key in ("enum", "const"):
            values = [item] if key == "const" else item
            known = {_text(value) for value in values}
            merged["enum"] = [value for value in first["enum"] if _text(value) in known] if "enum" in merged else values
    if any(key in second for key in OBJECT_KEYS):
        merged |= (
            _merge_objects(first, second) if any(key in first for key in OBJECT_KEYS) else _pick(second, OBJECT_KEYS)
        )
    if any(key in second for key in ARRAY_KEYS):
        merged |= _merge_arrays(first, second) if any(key in first for key in ARRAY_KEYS) else _pick(second, ARRAY_KEYS)
    return merged


def _merge_objects(first: Json, second: Json) -> Json:
    sides = (first, second)
    names = [
        *first.get("properties", {}),
        *(n for n in second.get("properties", {}) if n not in first.get("properties", {})),
    ]
    properties = {name: both(*(part for side in sides for part in applicable(side, name))) for name in names}
    patterns: Json = {}
    for side, other in (sides, sides[::-1]):
        for pattern, schema in side.get("patternProperties", {}).items():
            others = other.get("patternProperties", {})
            # Other patterns of the other side may match the same names, so its rest may not apply to them.
            rest = others.get(pattern, True) if others else other.get("additionalProperties", True)
            patterns[pattern] = both(schema, rest)
    additional = both(*(side.get("additionalProperties", True) for side in sides))
    merged: Json = {"properties": properties, "additionalProperties": additional}
    return merged | ({"patternProperties": patterns} if patterns else {})


def _merge_arrays(first: Json, second: Json) -> Json:
    size = max(len(first.get("prefixItems", [])), len(second.get("prefixItems", [])))
    prefix = [both(item_schema(first, index), item_schema(second, index)) for index in range(size)]
    merged: Json = {"items": both(first.get("items", True), second.get("items", True))}
    return merged | ({"prefixItems": prefix} if prefix else {})


def _pick(schema: Json, keys: Iterable[str]) -> Json:
    return {key: schema[key] for key in keys if key in schema}


def _text(value: Any) -> str:
    """Return a text that is equal for equal JSON values; 1 and 1.0 are equal."""
    return json.dumps(_plain_numbers(value), sort_keys=True)


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    return {key: _plain_numbers(item) for key, item in value.items()} if isinstance(value, dict) else value
