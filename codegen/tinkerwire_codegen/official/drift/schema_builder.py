"""Types in the notation of the facts as schemas in the style of the contract."""

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
    "str (iso)": {"type": "string"},
}
PLAIN = frozenset({"string", "integer", "number", "boolean"})
TODO = "TODO: say in a sentence what it is."


class SchemaBuilder:
    """Turns types into schemas; what must have a name of its own in the contract is kept in ``components``."""

    def __init__(self) -> None:
        self.components: Json = {}

    def schema(self, text: str, name: str) -> Json:
        """The schema of a type; ``name`` is for an enum or union that has none."""
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
            return {"type": "array", "items": self.schema(parts[0], f"{name}Item")}
        if inner and head == "map":
            return {"type": "object", "additionalProperties": self.schema(parts[-1], f"{name}Value") or True}
        if inner and head == "tuple":
            items = [self.schema(part, f"{name}{index}") for index, part in enumerate(parts)]
            size = len(items)
            return {"type": "array", "prefixItems": items, "items": False, "minItems": size, "maxItems": size}
        return {"$ref": f"#/components/schemas/{text.removesuffix('#inmem')}"}

    def _union(self, members: list[str], name: str) -> Json:
        literals = [member for member in members if member.startswith('"')]
        others = [member for member in members if member not in literals and member != "null"]
        if len(literals) > 1 or len(literals) + len(others) > 1:
            core = {"$ref": f"#/components/schemas/{name}"}
            self.components[name] = self._named(literals, others, name)
        else:
            core = self.schema((literals + others)[0], name)
        if "null" not in members:
            return core
        if core.get("type") in PLAIN and "const" not in core:
            return {**core, "type": [core["type"], "null"]}
        return {"anyOf": [core, {"type": "null"}]}

    def _named(self, literals: list[str], others: list[str], name: str) -> Json:
        if not others:
            return {"description": TODO, "type": "string", "enum": [json.loads(value) for value in literals]}
        return {"description": TODO, "anyOf": [self.schema(part, f"{name}{i}") for i, part in enumerate(others)]}


def _constant(text: str) -> Json:
    value = json.loads(text)
    kinds = {bool: "boolean", int: "integer", str: "string"}
    return {"type": kinds[type(value)], "const": value}


def type_schema(fact: Json, name: str, version: str, builder: SchemaBuilder) -> Json:
    """A whole type of the facts as a component."""
    start: Json = {"description": TODO, "x-since": version}
    kind = fact["kind"]
    if kind in ("literal", "enum"):
        scalar = "integer" if all(isinstance(value, int) for value in fact["values"]) else "string"
        return {**start, "type": scalar, "enum": fact["values"]}
    if kind == "alias":
        return start | builder.schema(fact["target"], name)
    if kind == "union":
        found = {**start, "anyOf": [builder.schema(member, name) for member in fact["members"]]}
        tag = fact.get("discriminator")
        return {**found, "discriminator": {"propertyName": tag}} if tag else found
    found = {**start, "type": "object"}
    if fact.get("strict"):
        found["additionalProperties"] = False
    required = [field for field, detail in fact["fields"].items() if detail["required"]]
    if required:
        found["required"] = required
    properties = {n: field_schema(f, f"{name}{camel(n)}", builder) for n, f in fact["fields"].items()}
    return {**found, "properties": properties}


def field_schema(fact: Json, name: str, builder: SchemaBuilder) -> Json:
    """A field of the facts as a property."""
    found = {"description": TODO, **builder.schema(fact["type"], name)}
    if "default" in fact:
        found["default"] = fact["default"]
    return found


def camel(name: str) -> str:
    """snake_case as CamelCase."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
