"""One dialect for schemas: the forms of OpenAPI 3.0 and some synonyms as JSON Schema 2020-12."""

from __future__ import annotations

from typing import Any

from .malformed import rename_malformed

Json = dict[str, Any]

NESTED_SCHEMAS = frozenset(
    {
        *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema", "additionalItems"),
    }
)
NESTED_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
NESTED_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})

ANNOTATIONS = frozenset(
    {
        *("description", "title", "example", "examples", "deprecated", "default", "discriminator", "summary"),
        *("externalDocs", "xml", "readOnly", "writeOnly", "$comment", "$schema", "$id", "$anchor", "$defs"),
        *("definitions", "$vocabulary", "$dynamicAnchor"),
    }
)
"""Keywords that validate nothing by themselves; definitions become components, and other modules compare the rest."""

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED_BITS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
DIRECTION_MARKS = {"request": "readOnly", "response": "writeOnly"}


def to_modern_schema(schema: Json, *, is_3_0: bool) -> Json:
    """Return a schema whose parts are modern already in the modern dialect; annotations stay."""
    schema = _replace_exclusive_flags(dict(schema))
    if is_3_0:
        schema = _replace_nullable(schema)
    schema = rename_malformed(schema)
    _replace_integer_format(schema)
    if schema.get("format") == "byte":
        del schema["format"]
        schema.setdefault("contentEncoding", "base64")
    if schema.get("format") == "password":
        del schema["format"]  # it asks forms to hide the input
    if "discriminator" in schema and "oneOf" in schema and "anyOf" not in schema:
        schema["anyOf"] = schema.pop("oneOf")  # the tag selects one member, even if the others accept the value
    return schema


def select_direction(node: Any, direction: str, components: Json) -> Any:
    """Return a schema as one direction sees it: requests have no read-only properties, responses no write-only ones."""
    if isinstance(node, list):
        return [select_direction(item, direction, components) for item in node]
    if not isinstance(node, dict):
        return node
    selected = {
        key: item
        if key in ("const", "enum", "default", "example", "examples", "discriminator")
        else {name: select_direction(member, direction, components) for name, member in item.items()}
        if key in NESTED_MAPS and isinstance(item, dict)
        else select_direction(item, direction, components)
        for key, item in node.items()
    }
    properties = node.get("properties")
    if isinstance(properties, dict):
        mark = DIRECTION_MARKS[direction]
        dropped = {name for name, member in properties.items() if _has_mark(member, mark, components)}
        if dropped:
            kept = {name: item for name, item in selected.pop("properties").items() if name not in dropped}
            required = [name for name in selected.pop("required", []) if name not in dropped]
            selected |= ({"properties": kept} if kept else {}) | ({"required": required} if required else {})
    return selected


def strip_annotations(node: Any, *, inside: str = "") -> Any:
    """Remove descriptions, defaults and marks from a schema; properties with such names stay."""
    if isinstance(node, list):
        return [strip_annotations(item) for item in node]
    if not isinstance(node, dict):
        return node
    if inside in NESTED_MAPS or inside == "schemas":
        return {name: strip_annotations(item) for name, item in node.items()}
    constraints = {key: item for key, item in node.items() if key not in ANNOTATIONS and not key.startswith("x-")}
    return {
        key: item if key in ("const", "enum") else strip_annotations(item, inside=key)
        for key, item in constraints.items()
    }


def _has_mark(schema: Any, mark: str, components: Json) -> bool:
    for _ in range(10):
        if not isinstance(schema, dict):
            return False
        if schema.get(mark) is True:
            return True
        if "$ref" not in schema:
            return False
        schema = components.get(schema["$ref"].rpartition("/")[2])
    return False


def _replace_exclusive_flags(schema: Json) -> Json:
    """Write bounds with a flag, as in OpenAPI 3.0 and some documents of 3.1, as exclusive bounds."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool):
            is_exclusive = schema.pop(exclusive)
            if is_exclusive and bound in schema:
                schema[exclusive] = schema.pop(bound)
    return schema


def _replace_nullable(schema: Json) -> Json:
    is_nullable = schema.pop("nullable", False) is True
    if not is_nullable:
        return schema
    if isinstance(schema.get("type"), str) and not {"allOf", "anyOf", "oneOf", "not", "const"} & schema.keys():
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    outer = {key: schema.pop(key) for key in list(schema) if key in ANNOTATIONS and key != "discriminator"}
    if isinstance(schema.get("type"), str) and "anyOf" in schema and schema["type"] != "object":
        return {**outer, "anyOf": [schema, {"type": "null"}]}
    if schema.keys() <= {"anyOf", "type", "discriminator"} and "anyOf" in schema:
        return {
            **outer,
            **{k: v for k, v in schema.items() if k != "type"},
            "anyOf": [*schema["anyOf"], {"type": "null"}],
        }
    if not schema.keys() - {"enum"} and "enum" in schema:
        return {**outer, "enum": schema["enum"] if None in schema["enum"] else [*schema["enum"], None]}
    if not schema:
        return outer  # any value, null included
    return {**outer, "anyOf": [schema, {"type": "null"}]}


def _replace_integer_format(schema: Json) -> None:
    """Write the width of an integer as bounds."""
    kinds = schema.get("type")
    name = schema.get("format")
    if "integer" not in (kinds if isinstance(kinds, list) else [kinds]) or not isinstance(name, str):
        return
    if name in INTEGER_BITS:
        low, high = -(2 ** (INTEGER_BITS[name] - 1)), 2 ** (INTEGER_BITS[name] - 1) - 1
    elif name in UNSIGNED_BITS:
        low, high = 0, 2 ** UNSIGNED_BITS[name] - 1
    else:
        return
    del schema["format"]
    if "exclusiveMinimum" not in schema:
        schema["minimum"] = max(low, schema.get("minimum", low))
    if "exclusiveMaximum" not in schema:
        schema["maximum"] = min(high, schema.get("maximum", high))
