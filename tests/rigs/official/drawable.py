"""Plain documents from which values can be drawn for the oracles: pydantic's schemas and the contract's."""

from __future__ import annotations

from typing import Any

from tests.rigs.official.exceptions import TAGS

from tinkerwire_codegen.contract.bundle import INT64

Json = dict[str, Any]

WORDS = ("title", "description", "examples", "discriminator")
TENSOR = "TensorData"
PREFIX = "#/components/schemas/"


def of_pydantic(name: str, schema: Json) -> Json:
    """Return pydantic's JSON Schema of a type as a plain document in the contract's keywords."""
    own = {key: item for key, item in schema.items() if key != "$defs"}
    found = {each: _reworded(item) for each, item in schema.get("$defs", {}).items()}
    found.setdefault(name, _reworded(own))
    if TENSOR in found:
        # JSON Schema cannot express that data fits dtype and shape.
        found[TENSOR]["x-mixin"] = "TensorDataMixin"
    for owner, (field, tag) in TAGS.items():
        if owner in found:
            found[owner]["properties"][field] = {"const": tag}
    return {"components": {"schemas": found}}


def _reworded(node: Any) -> Any:
    if isinstance(node, list):
        return [_reworded(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: _reworded(item) for key, item in node.items() if key not in (*WORDS, "properties", "oneOf")}
    if "oneOf" in node:
        found["anyOf"] = _reworded(node["oneOf"])
    if "properties" in node:
        found["properties"] = {name: _reworded(detail) for name, detail in node["properties"].items()}
    if node.get("type") == "integer":
        # Python has no bounds, the wire has those of 64 bits.
        found = {**INT64, **found}
    if node.get("format") == "binary":
        del found["format"]
        found["contentEncoding"] = "base64"
    return found


def narrow(document: Json) -> Json:
    """Return a plain document of the contract without what the SDK's types do not declare.

    These are undeclared properties, and future enum values, which the contract accepts and the SDK rejects.
    """
    schemas = document["components"]["schemas"]
    return {"components": {"schemas": {name: _narrowed(schema, schemas) for name, schema in schemas.items()}}}


def _narrowed(node: Any, schemas: Json) -> Any:
    if isinstance(node, list):
        return [_narrowed(item, schemas) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: _narrowed(item, schemas) for key, item in node.items()}
    if isinstance(node.get("properties"), dict):
        found["properties"] = {
            name: detail for name, detail in found["properties"].items() if not detail.get("x-undeclared")
        }
    members = node.get("anyOf", [])
    if any("enum" in schemas.get(member.get("$ref", "").removeprefix(PREFIX), {}) for member in members):
        found["anyOf"] = [member for member in found["anyOf"] if member.get("type") != "string"]
    return found
