"""Unions of a plain document, as oneOf wherever a value fits one member only."""

from __future__ import annotations

from itertools import combinations
from typing import Any

Json = dict[str, Any]


def write_exclusive_unions(document: Json) -> Json:
    """Write unions as oneOf if a tag or the keys select the member; members of a tagged union require the tag."""
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        members = [schemas.get(member.get("$ref", "").rpartition("/")[2], {}) for member in schema.get("anyOf", [])]
        tag = schema.get("discriminator", {}).get("propertyName")
        if tag is not None or (members and all(_exclude_each_other(*pair) for pair in combinations(members, 2))):
            schemas[name] = {"oneOf" if key == "anyOf" else key: value for key, value in schema.items()}
        if tag is not None:
            for member in members:
                _require(member, tag)
    return document


def _exclude_each_other(first: Json, second: Json) -> bool:
    """Return whether no object fits both, because one requires a key that the other does not allow."""
    return _rejects_keys_of(first, second) or _rejects_keys_of(second, first)


def _rejects_keys_of(schema: Json, other: Json) -> bool:
    required = {*other.get("required", [])} if other.get("type") == "object" else set()
    return schema.get("additionalProperties") is False and not required <= schema.get("properties", {}).keys()


def _require(schema: Json, field: str) -> None:
    if field not in schema.get("required", []):
        names = {*schema.get("required", []), field}
        schema["required"] = [name for name in schema["properties"] if name in names]
