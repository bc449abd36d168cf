"""OpenAPI 3.0 form of a plain document, for tools that cannot read OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]

VERSION = "3.0.3"
BOTH = frozenset(
    {"additionalProperties", "allOf", "anyOf", "default", "deprecated", "description", "discriminator", "enum"}
    | {"format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength"}
    | {"minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "properties", "readOnly", "required"}
    | {"title", "type", "uniqueItems", "writeOnly", "externalDocs", "xml", "example"}
)
"""Keywords of schemas that both versions have, with equal meaning except for types and subschemas."""
DESCRIBED = frozenset({"dependentRequired"})
"""Keywords that are left out, because descriptions have these rules in words."""
NULL: Json = {"enum": [None], "nullable": True}
INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}


def convert_to_openapi30(document: Json) -> Json:
    """Return the OpenAPI 3.0 form of a plain OpenAPI 3.1 document; ``document`` does not change.

    An array of fixed members becomes an array of any of them, because OpenAPI 3.0 has no tuples. A reference that may
    be null becomes ``allOf`` with ``nullable``, which generators read as a nullable reference. References have no
    default, because the Go generator of openapi-generator writes that as JSON. No schema has the default null, which is
    what an omitted nullable property means.

    Raises:
        ValueError: OpenAPI 3.0 cannot express a schema; the error names its place.
    """
    info = dict(document["info"])
    if "license" in info:
        info["license"] = {key: value for key, value in info["license"].items() if key != "identifier"}
    converted = {key: value for key, value in document.items() if key not in ("jsonSchemaDialect", "webhooks")}
    converted |= {"openapi": VERSION, "info": info, "paths": _convert_node(document["paths"], "#/paths")}
    schemas = document["components"].get("schemas", {})
    converted["components"] = _convert_node(_without(document["components"], "schemas"), "#/components")
    converted["components"]["schemas"] = {
        name: convert_schema(schema, f"#/components/schemas/{name}") for name, schema in schemas.items()
    }
    return converted


def convert_schema(schema: Any, place: str) -> Json:
    """Return the OpenAPI 3.0 form of a JSON Schema at ``place``.

    Raises:
        ValueError: OpenAPI 3.0 cannot express the schema.
    """
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if "$ref" in schema:
        rest = _without(schema, "$ref", "default")
        return {**rest, "allOf": [{"$ref": schema["$ref"]}]} if rest else {"$ref": schema["$ref"]}
    converted: Json = {}
    for key, value in schema.items():
        if key in BOTH or key.startswith("x-"):
            converted[key] = value
        elif key not in CONVERSIONS and key not in DESCRIBED:
            raise ValueError(f"{place}: OpenAPI 3.0 has no {key}; use OpenAPI 3.1, or describe the rule in words")
    for key, value in _convert_subschemas(converted, place):
        converted[key] = value
    for key, convert in CONVERSIONS.items():
        if key in schema:
            convert(converted, schema[key], place)
    _name_int64(converted)
    _convert_null(converted)
    if converted.get("default", 0) is None:
        del converted["default"]
    return converted


def _convert_subschemas(schema: Json, place: str) -> Iterator[tuple[str, Any]]:
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            members = enumerate(schema[key])
            yield key, [convert_schema(member, f"{place}/{key}/{index}") for index, member in members]
    if "properties" in schema:
        fields = schema["properties"].items()
        yield "properties", {name: convert_schema(field, f"{place}/properties/{name}") for name, field in fields}
    for key in ("items", "not"):
        if key in schema:
            yield key, convert_schema(schema[key], f"{place}/{key}")
    if isinstance(schema.get("additionalProperties"), dict):
        yield "additionalProperties", convert_schema(schema["additionalProperties"], f"{place}/additionalProperties")


def _convert_const(schema: Json, value: Any, _: str) -> None:
    schema["enum"] = [value]


def _convert_examples(schema: Json, examples: list[Any], _: str) -> None:
    if examples:
        schema.setdefault("example", examples[0])


def _convert_encoding(schema: Json, encoding: str, place: str) -> None:
    if encoding != "base64":
        raise ValueError(f"{place}: OpenAPI 3.0 has no contentEncoding {encoding!r}; only base64 can be converted")
    schema["format"] = "byte"


def _convert_prefix(schema: Json, members: list[Any], place: str) -> None:
    kinds: list[Json] = []
    for index, member in enumerate(members):
        kind = _without(convert_schema(member, f"{place}/prefixItems/{index}"), "description")
        if kind not in kinds:
            kinds.append(kind)
    if {"type": "number"} in kinds:
        kinds = [kind for kind in kinds if kind.get("type") != "integer"]
    schema["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _convert_exclusive_minimum(schema: Json, bound: float, _: str) -> None:
    if bound >= schema.get("minimum", bound):
        schema |= {"minimum": bound, "exclusiveMinimum": True}


def _convert_exclusive_maximum(schema: Json, bound: float, _: str) -> None:
    if bound <= schema.get("maximum", bound):
        schema |= {"maximum": bound, "exclusiveMaximum": True}


CONVERSIONS: Mapping[str, Any] = {
    "const": _convert_const,
    "contentEncoding": _convert_encoding,
    "examples": _convert_examples,
    "exclusiveMaximum": _convert_exclusive_maximum,
    "exclusiveMinimum": _convert_exclusive_minimum,
    "prefixItems": _convert_prefix,
}


def _name_int64(schema: Json) -> None:
    """Write the bounds of 64 bits as a format, because some readers of bounds have only floats."""
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    if "integer" in kinds and schema.items() >= INT64.items():
        for bound in INT64:
            del schema[bound]
        schema["format"] = "int64"


def _convert_null(schema: Json) -> None:
    """Write a type or a member that is null as ``nullable``."""
    if isinstance(schema.get("type"), list):
        members = [{"type": kind} for kind in schema.pop("type")]
        _set_members(schema, "anyOf", [NULL if member == {"type": "null"} else member for member in members])
    elif schema.get("type") == "null":
        del schema["type"]
        schema |= NULL
    for key in ("anyOf", "oneOf"):
        if NULL in schema.get(key, []):
            _set_members(schema, key, schema.pop(key))


def _set_members(schema: Json, key: str, members: list[Json]) -> None:
    """Set the members of a union; null becomes ``nullable``, and a single member becomes part of the schema."""
    others = [member for member in members if member != NULL]
    is_nullable = len(others) < len(members)
    if len(others) == 1:
        schema |= {"allOf": others} if "$ref" in others[0] else {**others[0], **schema}
        if is_nullable and "enum" in others[0]:
            schema["enum"] = [*schema["enum"], None]
    else:
        schema[key] = others
        # Beside a type, nullable has a meaning of its own; elsewhere it depends on the reader.
        typed = next((index for index, member in enumerate(others) if "type" in member), None)
        if is_nullable and typed is not None:
            others[typed] = {**others[typed], "nullable": True}
            return
    if is_nullable:
        schema["nullable"] = True


def _convert_node(node: Any, place: str) -> Any:
    """Convert the schemas of operations, and what holds them."""
    if isinstance(node, list):
        return [_convert_node(item, f"{place}/{index}") for index, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    return {
        key: convert_schema(value, f"{place}/{key}")
        if key == "schema" and isinstance(value, (dict, bool))
        else _convert_node(value, f"{place}/{key}")
        for key, value in node.items()
    }


def _without(node: Json, *keys: str) -> Json:
    return {key: value for key, value in node.items() if key not in keys}
