"""Schemas in the style of the contract, built from types in the notation of the facts."""

from __future__ import annotations

import json
from typing import Any

from ..type_notation import split_type

Json = dict[str, Any]

SCALARS: dict[str, Json] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "null": {"type": "null"},
    "any": {},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "datetime": {"type": "string", "format": "date-time"},
    "datetime(tz)": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "str (iso)": {"type": "string", "format": "date"},
}
LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
"""Keywords of JSON Schema for the limits of the facts."""
LIST_LIMITS = LIMITS | {"min_length": "minItems", "max_length": "maxItems"}
PLAIN = frozenset({"string", "integer", "number", "boolean"})
TODO = "TODO: describe it in a sentence."


class SchemaBuilder:
    """Builder of schemas; ``components`` collects those that need a name of their own in the contract."""

    def __init__(self) -> None:
        """Initialize without components."""
        self.components: Json = {}

    def build(self, text: str, name: str) -> Json:
        """Build the schema of a type; ``name`` is for an enum or union without a name."""
        members = split_type(text, " | ")
        if len(members) > 1:
            return self._union(members, name)
        if text in SCALARS:
            return dict(SCALARS[text])
        if text.startswith('"') or text.lstrip("-").isdigit() or text in ("true", "false"):
            return _constant(text)
        head, _, inner = text.partition("[")
        parts = split_type(inner[:-1], ", ")
        if inner and head == "list":
            return {"type": "array", "items": self.build(parts[0], f"{name}Item")}
        if inner and head == "map":
            return {"type": "object", "additionalProperties": self.build(parts[-1], f"{name}Value") or True}
        if inner and head == "tuple":
            items = [self.build(part, f"{name}{index}") for index, part in enumerate(parts)]
            size = len(items)
            return {"type": "array", "prefixItems": items, "items": False, "minItems": size, "maxItems": size}
        return {"$ref": f"#/components/schemas/{text.removesuffix('#inmem')}"}

    def _union(self, members: list[str], name: str) -> Json:
        literals = [member for member in members if member.startswith('"')]
        types = [member for member in members if member not in literals and member != "null"]
        if len(literals) > 1 or len(literals) + len(types) > 1:
            core = {"$ref": f"#/components/schemas/{name}"}
            self.components[name] = self._named(literals, types, name)
        else:
            core = self.build((literals + types)[0], name)
        if "null" not in members:
            return core
        if core.get("type") in PLAIN and "const" not in core:
            return {**core, "type": [core["type"], "null"]}
        return {"anyOf": [core, {"type": "null"}]}

    def _named(self, literals: list[str], types: list[str], name: str) -> Json:
        if not types:
            return {"description": TODO, "type": "string", "enum": [json.loads(value) for value in literals]}
        return {"description": TODO, "anyOf": [self.build(part, f"{name}{i}") for i, part in enumerate(types)]}


def _constant(text: str) -> Json:
    value = json.loads(text)
    kinds = {bool: "boolean", int: "integer", str: "string"}
    return {"type": kinds[type(value)], "const": value}


def build_type(fact: Json, name: str, version: str, builder: SchemaBuilder) -> Json:
    """Build a whole type of the facts as a component."""
    start: Json = {"description": TODO, "x-since": version}
    kind = fact["kind"]
    if kind in ("literal", "enum"):
        scalar = "integer" if all(isinstance(value, int) for value in fact["values"]) else "string"
        return {**start, "type": scalar, "enum": fact["values"]}
    if kind == "alias":
        return start | builder.build(fact["target"], name)
    if kind == "union":
        schema = {**start, "anyOf": [builder.build(member, name) for member in fact["members"]]}
        tag = fact.get("discriminator")
        return {**schema, **({"discriminator": {"propertyName": tag}} if tag else {"x-untagged": True})}
    schema = {**start, "type": "object"}
    if fact.get("strict"):
        schema["additionalProperties"] = False
    required = [field for field, detail in fact["fields"].items() if detail["required"]]
    if required:
        schema["required"] = required
    properties = {n: build_field(f, f"{name}{to_camel_case(n)}", builder) for n, f in fact["fields"].items()}
    return {**schema, "properties": properties}


def build_field(fact: Json, name: str, builder: SchemaBuilder) -> Json:
    """Build a field of the facts as a property."""
    schema = {"description": TODO, **_constrain(builder.build(fact["type"], name), fact.get("constraints", {}))}
    if "default" in fact:
        schema["default"] = fact["default"]
    return schema


def _constrain(schema: Json, limits: Json) -> Json:
    """Add the limits of a field to the part of its schema that they apply to."""
    if not limits:
        return schema
    if "anyOf" in schema:
        return {"anyOf": [part if part.get("type") == "null" else _constrain(part, limits) for part in schema["anyOf"]]}
    is_list = schema.get("type") == "array"
    return {
        **schema,
        **{(LIST_LIMITS if is_list else LIMITS)[name]: value for name, value in limits.items() if name in LIMITS},
    }


def to_camel_case(name: str) -> str:
    """Convert snake_case to CamelCase."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
