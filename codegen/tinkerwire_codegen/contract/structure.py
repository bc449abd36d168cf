"""The parts of an OpenAPI document: which parts each kind of node has, and the form of their collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ONE, LIST, MAP = "one", "list", "map"
Parts = Mapping[str, tuple[str, str]]

_SCHEMA: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("items", "additionalProperties", "not", "if", "then", "else", "contains"), (ONE, "schema")),
    **dict.fromkeys(("propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"), (ONE, "schema")),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), (LIST, "schema")),
    **dict.fromkeys(("patternProperties", "dependentSchemas", "$defs"), (MAP, "schema")),
    "properties": (MAP, "property"),
    "discriminator": (ONE, "discriminator"),
    "x-history": (LIST, "history"),
}
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_PARAMETER: Parts = {"schema": (ONE, "schema"), "content": (MAP, "media type"), "x-history": (LIST, "history")}

PARTS: Mapping[str, Parts] = {
    "document": {
        "info": (ONE, "info"),
        "tags": (LIST, "tag"),
        "paths": (MAP, "path"),
        "components": (ONE, "components"),
        "x-headers": (ONE, "common headers"),
    },
    "components": {
        "schemas": (MAP, "named schema"),
        "parameters": (MAP, "parameter"),
        "responses": (MAP, "response"),
        "headers": (MAP, "header"),
        "requestBodies": (MAP, "body"),
        "securitySchemes": (MAP, "security scheme"),
    },
    "common headers": {"request": (LIST, "parameter"), "response": (MAP, "header")},
    "path": {**dict.fromkeys(_METHODS, (ONE, "operation")), "parameters": (LIST, "parameter")},
    "operation": {
        "parameters": (LIST, "parameter"),
        "requestBody": (ONE, "body"),
        "responses": (MAP, "response"),
    },
    "body": {"content": (MAP, "media type")},
    "response": {"headers": (MAP, "header"), "content": (MAP, "media type"), "links": (MAP, "link")},
    "media type": {"schema": (ONE, "schema"), "x-history": (LIST, "history")},
    "parameter": _PARAMETER,
    "header": _PARAMETER,
    "schema": _SCHEMA,
    "named schema": _SCHEMA,
    "property": _SCHEMA,
    "history": {"schema": (ONE, "earlier schema")},
    "earlier schema": _SCHEMA,
}
"""The parts of each kind of node, as keyword, form and kind."""


@dataclass(frozen=True)
class Part:
    """One node of a document; ``owners`` are the parts that contain it, the document first."""

    place: str
    kind: str
    node: Any
    owners: tuple[Part, ...] = ()


def list_parts(part: Part) -> Iterator[Part]:
    """Yield a part and all parts in it; parts of a wrong type are left out."""
    yield part
    if not isinstance(part.node, dict):
        return
    owners = (*part.owners, part)
    for key, (form, kind) in PARTS.get(part.kind, {}).items():
        value, place = part.node.get(key), f"{part.place}/{key}"
        if form == ONE and key in part.node:
            yield from list_parts(Part(place, kind, value, owners))
        elif form == LIST and isinstance(value, list):
            for index, item in enumerate(value):
                yield from list_parts(Part(f"{place}/{index}", kind, item, owners))
        elif form == MAP and isinstance(value, dict):
            for name, item in value.items():
                yield from list_parts(Part(f"{place}/{name}", kind, item, owners))


def find_wrong_forms(part: Part) -> Iterator[tuple[str, str]]:
    """Yield each place, and the error, where a part of a document has another type than OpenAPI requires."""
    if isinstance(part.node, bool) and part.kind == "schema":
        return
    if not isinstance(part.node, dict):
        yield part.place, f"expected a mapping, got {part.node!r:.100}"
        return
    for key, (form, _) in PARTS.get(part.kind, {}).items():
        expected, text = (list, "a list") if form == LIST else (dict, "a mapping")
        if form != ONE and key in part.node and not isinstance(part.node[key], expected):
            yield f"{part.place}/{key}", f"expected {text}, got {part.node[key]!r:.100}"
    if part.kind == "discriminator":
        yield from _find_wrong_targets(part)


def _find_wrong_targets(part: Part) -> Iterator[tuple[str, str]]:
    tag, targets = part.node.get("propertyName"), part.node.get("mapping", {})
    if not isinstance(tag, str):
        yield part.place, f"propertyName must be a text, got {tag!r:.100}"
    if not isinstance(targets, dict) or not all(isinstance(target, str) for target in targets.values()):
        yield f"{part.place}/mapping", f"expected a mapping of texts, got {targets!r:.100}"
