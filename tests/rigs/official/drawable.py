"""Plain documents from which values can be drawn for the oracles: pydantic's schemas and the contract's."""

from __future__ import annotations

from typing import Any

from tests.rigs.official.exceptions import TAGS

from tinkerwire_codegen.contract.bundle import INT64

Json = dict[str, Any]

ANNOTATIONS = ("title", "description", "examples", "discriminator")
TENSOR = "TensorData"
PREFIX = "#/components/schemas/"


def convert_pydantic_schema(name: str, schema: Json) -> Json:
    """Return pydantic's JSON Schema of a type as a plain document in the contract's keywords."""
    root = {key: item for key, item in schema.items() if key != "$defs"}
    schemas = {key: _reword(item) for key, item in schema.get("$defs", {}).items()}
    schemas.setdefault(name, _reword(root))
    if TENSOR in schemas:
        # JSON Schema cannot express that data fits dtype and shape.
        schemas[TENSOR]["x-mixin"] = "TensorDataMixin"
    for owner, (field, tag) in TAGS.items():
        if owner in schemas:
            schemas[owner]["properties"][field] = {"const": tag}
    return {"components": {"schemas": schemas}}


def _reword(node: Any) -> Any:
    if isinstance(node, list):
        return [_reword(item) for item in node]
    if not isinstance(node, dict):
        return node
    reworded = {key: _reword(item) for key, item in node.items() if key not in (*ANNOTATIONS, "properties", "oneOf")}
    if "oneOf" in node:
        reworded["anyOf"] = _reword(node["oneOf"])
    if "properties" in node:
        reworded["properties"] = {name: _reword(detail) for name, detail in node["properties"].items()}
    if node.get("type") == "integer":
        # Python has no bounds, the wire has those of 64 bits.
        reworded = {**INT64, **reworded}
    if node.get("format") == "binary":
        del reworded["format"]
        reworded["contentEncoding"] = "base64"
    return reworded


def narrow(document: Json) -> Json:
    """Return a plain document of the contract without what the SDK's types do not declare.

    These are undeclared properties, and future enum values, which the contract accepts and the SDK rejects.
    """
    schemas = document["components"]["schemas"]
    return {"components": {"schemas": {name: _narrow(schema, schemas) for name, schema in schemas.items()}}}


def _narrow(node: Any, schemas: Json) -> Any:
    if isinstance(node, list):
        return [_narrow(item, schemas) for item in node]
    if not isinstance(node, dict):
        return node
    narrowed = {key: _narrow(item, schemas) for key, item in node.items()}
    if isinstance(node.get("properties"), dict):
        narrowed["properties"] = {
            name: detail for name, detail in narrowed["properties"].items() if not detail.get("x-undeclared")
        }
    members = node.get("anyOf", [])
    if any("enum" in schemas.get(member.get("$ref", "").removeprefix(PREFIX), {}) for member in members):
        narrowed["anyOf"] = [member for member in narrowed["anyOf"] if member.get("type") != "string"]
    return narrowed
