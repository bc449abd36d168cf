"""Documents made ready to compare: shared parts in place, schemas in one dialect, references to components only."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from .dialect import NESTED_LISTS, NESTED_MAPS, NESTED_SCHEMAS, to_modern_schema

Json = dict[str, Any]

COMPONENTS = "#/components/schemas/"
OPAQUE = frozenset({"example", "examples", "default", "enum", "const", "mapping"})
NAMED = frozenset({"headers", "callbacks", "encoding", "webhooks", "securitySchemes"})
"""Keys whose entries have names of their own; elsewhere, x- begins an extension."""

ENTRIES = NAMED | {"responses"}
"""Keys whose entries are never values of keywords: the response "default" is not a default."""

FILLED = frozenset({"content", "headers"})
"""Keys whose entries may be empty; elsewhere, an entry without a value is omitted."""

MAX_NESTING = 60


def prepare_document(document: Json) -> Json:
    """Return a document without shared parameters, bodies and the like, whose schemas are JSON Schema 2020-12.

    Each reference of a schema names a component. Targets outside the components become components.

    Raises:
        ValueError: a reference has no target, refers to another file, or shared parts contain each other.
    """
    return _Preparation(document).run()


def align_unions(document: Json, other: Json) -> Json:
    """Return a prepared document whose unions are of the kind that unions with tags have in the other document.

    A discriminator that is added or removed changes no value, although oneOf alone excludes values of two members.
    """
    aligned = {}
    for name, schema in document["components"]["schemas"].items():
        twin = other["components"]["schemas"].get(name)
        is_tagged = isinstance(twin, dict) and "discriminator" in twin and "anyOf" in twin
        if is_tagged and isinstance(schema, dict) and "oneOf" in schema and "anyOf" not in schema:
            aligned[name] = {"anyOf" if key == "oneOf" else key: item for key, item in schema.items()}
    if not aligned:
        return document
    components = document["components"]
    return {**document, "components": {**components, "schemas": {**components["schemas"], **aligned}}}


def unescape_pointer(text: str) -> str:
    """Decode one step of a JSON pointer in a reference."""
    return unquote(text).replace("~1", "/").replace("~0", "~")


def _to_reference_name(name: str) -> str:
    """Return a name without the characters that a reference may not have."""
    return re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)


class _Preparation:
    def __init__(self, document: Json) -> None:
        self._document = document
        self._components: Json = document.get("components") or {}
        self._is_3_0 = str(document.get("openapi", "")).startswith("3.0")
        self._anchors: dict[str, Any] = {}
        _collect_anchors(document, "", self._anchors)
        self._names: dict[str, str] = {}
        self._schemas: Json = {}

    def run(self) -> Json:
        document = self._document
        for name in self._components.get("schemas") or {}:
            self._names[COMPONENTS + name] = _to_reference_name(name)
        for name, schema in (self._components.get("schemas") or {}).items():
            self._schemas[_to_reference_name(name)] = self._schema(schema)
        prepared: Json = {
            key: self._inline(document.get(key) or {}, 0, key)
            for key in ("paths", "webhooks")
            if key in document or key == "paths"
        }
        kept = {key: item for key, item in document.items() if key not in ("paths", "webhooks", "components")}
        components = {key: item for key, item in self._components.items() if key == "securitySchemes"}
        inlined: Json = self._inline(components, 0)
        return {**kept, **prepared, "components": {**inlined, "schemas": self._schemas}}

    def _inline(self, node: Any, depth: int, inside: str = "") -> Any:
        """Replace references outside schemas by their targets."""
        if isinstance(node, list):
            return [self._inline(item, depth) for item in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str):
            if depth > MAX_NESTING:
                raise ValueError(f"{node['$ref']}: refers to itself; shared parts outside schemas must not")
            target = self._inline(self._find(node["$ref"]), depth + 1)
            siblings = {key: self._inline(item, depth) for key, item in node.items() if key != "$ref"}
            return {**target, **siblings} if isinstance(target, dict) else target
        return {
            key: item if key.startswith("x-") and inside not in NAMED else self._inline_entry(key, item, depth, inside)
            for key, item in ((key, {} if item is None and inside in FILLED else item) for key, item in node.items())
            if item is not None
        }

    def _inline_entry(self, key: str, item: Any, depth: int, inside: str) -> Any:
        if key in OPAQUE and inside not in ENTRIES:
            return item
        is_schema = key == "schema" and (
            isinstance(item, bool) or (isinstance(item, dict) and not {"schema", "content"} & item.keys())
        )
        return self._schema(item) if is_schema else self._inline(item, depth, key)

    def _schema(self, node: Any) -> Any:
        """Return a schema in the modern dialect, with references to components."""
        if not isinstance(node, dict):
            return node
        if self._is_3_0 and isinstance(node.get("$ref"), str):
            return {"$ref": self._refer(node["$ref"])}
        schema = dict(node)
        for key, item in node.items():
            if key in NESTED_SCHEMAS and isinstance(item, dict):
                schema[key] = self._schema(item)
            elif key in NESTED_LISTS and isinstance(item, list):
                schema[key] = [self._schema(member) for member in item]
            elif key in NESTED_MAPS and isinstance(item, dict):
                schema[key] = {name: self._schema(member) for name, member in item.items()}
        target = node.get("$ref", schema.pop("$dynamicRef", None))
        if isinstance(target, str):
            schema["$ref"] = self._refer(target)
        if isinstance(node.get("discriminator"), dict) and isinstance(node["discriminator"].get("mapping"), dict):
            mapping = {tag: self._refer_tag(target) for tag, target in node["discriminator"]["mapping"].items()}
            schema["discriminator"] = {**node["discriminator"], "mapping": mapping}
        return to_modern_schema(schema, is_3_0=self._is_3_0)

    def _refer(self, target: str) -> str:
        """Return the reference to the component that a reference means; create a missing component."""
        if target not in self._names:
            node = self._find(target)
            name = _to_reference_name(target.removeprefix("#/").replace("/", ".")) or "document"
            self._names[target] = name
            self._schemas[name] = self._schema(node)
        return COMPONENTS + self._names[target]

    def _refer_tag(self, target: str) -> str:
        """Return the reference that a tag means; real documents have tags without target, which select nothing."""
        try:
            return self._refer(target if "#" in target else COMPONENTS + target)
        except ValueError:
            return target

    def _find(self, target: str) -> Any:
        if target in self._anchors:
            return self._anchors[target]
        start, *steps = target.split("/")
        node: Any = self._document
        if start != "#":
            raise ValueError(f"{target}: refers outside the document; bundle all files into one document first")
        for step in map(unescape_pointer, steps):
            if isinstance(node, list) and step.isdigit() and int(step) < len(node):
                node = node[int(step)]
            elif isinstance(node, dict) and step in node:
                node = node[step]
            else:
                raise ValueError(f"{target} does not exist; define it or correct the name")
        return node


def _collect_anchors(node: Any, base: str, anchors: dict[str, Any]) -> None:
    """Index the schemas that have an $id or $anchor by the references that mean them."""
    if isinstance(node, list):
        for item in node:
            _collect_anchors(item, base, anchors)
    elif isinstance(node, dict):
        if isinstance(node.get("$id"), str):
            base = node["$id"].removesuffix("#")
            anchors.setdefault(base, node)
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(key), str):
                anchors.setdefault(f"{base}#{node[key]}", node)
                anchors.setdefault(f"#{node[key]}", node)
        for key, item in node.items():
            if key not in OPAQUE:
                _collect_anchors(item, base, anchors)
