"""Projections of the contract: its document at one wire version, and the union of all versions.

Any mapping may have the marks ``x-since`` (the first version that has the node), ``x-until`` (the first that lacks it)
and ``x-absent`` (a list of ``{since, until}``: gaps in between). ``x-enum-since`` and ``x-enum-until`` hold versions by
enum value. ``info`` lists all versions in ``x-versions``, and names in ``x-models-since`` the oldest whose requests the
models fit. ``x-history`` of a schema or property is a list of ``{until, required, schema}``: its earlier forms. A
``schema`` with the shape of values (type, $ref, anyOf ...) is the complete earlier schema, any other holds only the
differences. On the schema of a media type it holds the earlier type of the body.

A plain document leaves out what is marked ``x-protobuf-only``; the union document has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

NO_VERSION = "0"
"""A version before all versions, for documents that do not list theirs."""
MARKERS = frozenset(
    {"x-since", "x-until", "x-absent", "x-history", "x-enum-since", "x-enum-until", "x-versions", "x-models-since"}
)
SHAPE = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
SCALARS = frozenset({"boolean", "integer", "number", "string"})
SCHEMAS = "#/components/schemas/"

Json = dict[str, Any]
Version = tuple[int, ...]
VersionRange = tuple[str, "str | None"]
"""The first version that has a thing, and the first later version that lacks the thing, if any."""


@lru_cache(maxsize=256)
def parse_version(version: str) -> Version:
    """Parse a version such as 0.16.1 into at least three numbers; ValueError if it is not numbers and dots."""
    parts = str(version).split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"wire version: expected numbers separated by dots, such as 0.16.1, got {version!r}")
    return tuple(map(int, parts)) + (0,) * (3 - len(parts))


def version_before(versions: Sequence[str], version: str) -> str:
    """Return the newest of ordered versions that is older than ``version``.

    Raises:
        ValueError: all versions are as new as ``version``, or newer.
    """
    earlier = [candidate for candidate in versions if parse_version(candidate) < parse_version(version)]
    if not earlier:
        raise ValueError(f"wire version: must be newer than {versions[0]}, the oldest, got {version}")
    return earlier[-1]


def oldest_version(document: Json) -> str:
    """Return the oldest wire version that a contract describes."""
    versions: list[str] = _info(document).get("x-versions", [NO_VERSION])
    return versions[0]


def is_available(node: Any, version: Version) -> bool:
    """Return whether ``version`` has ``node``, by the version marks of the node."""
    if not isinstance(node, Mapping):
        return True
    since, until = node.get("x-since"), node.get("x-until")
    if since is not None and version < parse_version(since):
        return False
    if until is not None and parse_version(until) <= version:
        return False
    gaps = node.get("x-absent")
    return not isinstance(gaps, list) or not any(
        parse_version(gap["since"]) <= version < parse_version(gap["until"]) for gap in gaps
    )


def is_marked_protobuf_only(node: Any) -> bool:
    """Return whether only protobuf carries ``node``."""
    return isinstance(node, Mapping) and node.get("x-protobuf-only") is True


def project(document: Json, version: str) -> Json:
    """Return the plain OpenAPI document of one wire version; ``document`` does not change.

    Raises:
        ValueError: ``version`` cannot be parsed, or is older than the contract.
    """
    now = parse_version(version)
    oldest = oldest_version(document)
    if now < parse_version(oldest):
        raise ValueError(f"wire version: must be at least {oldest}, the oldest in the contract, got {version}")
    removed: set[str] = set()
    while True:
        # A union can lose its last member, and other unions their last one with it, so repeat until nothing changes.
        plain: Json = _project_node(document, now, removed)
        schemas = plain.get("components", {}).get("schemas", {})
        gone = {SCHEMAS + name for name in _schemas(document) if name not in schemas}
        gone |= {SCHEMAS + name for name, schema in schemas.items() if schema.get("anyOf") == []}
        if gone == removed:
            return _without_empty_operations(plain)
        removed = gone


def union_document(document: Json) -> Json:
    """Return the document of all wire versions together, without version marks; ``document`` does not change.

    A property that some version of its schema (from ``info.x-models-since`` on) lacks or does not require is optional
    here; without a default it may be null, and is by default.
    """
    union: Json = _without_markers(document)
    floor = parse_version(_info(document).get("x-models-since", NO_VERSION))
    for name, schema in _schemas(document).items():
        required = schema.get("required", [])
        optional = [
            field for field in required if not _always_required(schema["properties"].get(field, {}), schema, floor)
        ]
        plain = _schemas(union)[name]
        for field in optional:
            plain["properties"][field] = _nullable(plain["properties"][field])
        if optional:
            plain["required"] = [field for field in required if field not in optional]
        if not plain.get("required", True):
            del plain["required"]
        for field, detail in schema.get("properties", {}).items():
            if field not in required and _span(detail, schema, floor) != _span({}, schema, floor):
                plain["properties"][field] = _nullable(plain["properties"][field])
    return union


def _info(document: Json) -> Json:
    info: Json = document.get("info", {})
    return info


def _schemas(document: Json) -> Json:
    schemas: Json = document.get("components", {}).get("schemas", {})
    return schemas


def _without_markers(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_markers(item) for item in node]
    if isinstance(node, dict):
        return {key: _without_markers(item) for key, item in node.items() if key not in MARKERS}
    return node


def _project_node(node: Any, now: Version, removed: set[str]) -> Any:
    """Return a copy of ``node`` at the version ``now``, without marks and without nodes that the version lacks."""
    if isinstance(node, list):
        return [_project_node(item, now, removed) for item in node if is_available(item, now)]
    if not isinstance(node, dict):
        return node
    node, _ = _earlier_form(node, now)
    found = {
        key: _project_node(item, now, removed)
        for key, item in node.items()
        if key not in MARKERS and is_available(item, now) and not is_marked_protobuf_only(item)
    }
    if isinstance(node.get("properties"), dict) and isinstance(node.get("required", []), list):
        _adjust_required(found, node, now)
    if isinstance(node.get("enum"), list):
        since, until = node.get("x-enum-since", {}), node.get("x-enum-until", {})
        found["enum"] = [
            value
            for value in node["enum"]
            if is_available({"x-since": since.get(value), "x-until": until.get(value)}, now)
        ]
    for key in ("anyOf", "oneOf"):
        if isinstance(node.get(key), list):
            _drop_removed_members(found, key, removed)
    return found


def _earlier_form(node: Json, now: Version) -> tuple[Json, bool | None]:
    """Return the form of ``node`` at ``now``, and whether it was required then; None if that did not change."""
    entries = node.get("x-history")
    if not isinstance(entries, list):
        return node, None
    for entry in sorted(entries, key=lambda entry: parse_version(entry["until"])):
        if now < parse_version(entry["until"]):
            earlier = entry.get("schema", {})
            kept = {
                key: item
                for key, item in node.items()
                if not SHAPE & earlier.keys() or key == "description" or key.startswith("x-")
            }
            return kept | earlier, entry.get("required")
    return node, None


def _adjust_required(found: Json, node: Json, now: Version) -> None:
    written = node.get("required", [])
    needed = []
    for field, detail in node["properties"].items():
        earlier = _earlier_form(detail, now)[1] if isinstance(detail, dict) else None
        if field in found["properties"] and (field in written if earlier is None else earlier):
            needed.append(field)
    # In the written order, so that an unchanged list keeps its order.
    order = {field: place for place, field in enumerate(written)}
    found.pop("required", None)
    if needed:
        found["required"] = sorted(needed, key=lambda field: order.get(field, len(order)))


def _drop_removed_members(found: Json, key: str, removed: set[str]) -> None:
    members = [member for member in found[key] if _target(member) not in removed]
    found[key] = members
    mapping = found.get("discriminator", {}).get("mapping")
    if mapping:
        targets = {_target(member) for member in members}
        found["discriminator"]["mapping"] = {tag: to for tag, to in mapping.items() if to in targets}


def _target(member: Any) -> str | None:
    return member.get("$ref") if isinstance(member, dict) else None


def _without_empty_operations(document: Json) -> Json:
    schemas = _schemas(document)
    for name in [name for name, schema in schemas.items() if schema.get("anyOf") == []]:
        del schemas[name]
    paths: Json = document.get("paths", {})
    for path, item in list(paths.items()):
        operations = [op for op in item.values() if isinstance(op, dict) and "responses" in op]
        if not operations:
            del paths[path]
        for operation in operations:
            if operation.get("requestBody", {}).get("content") == {}:
                del operation["requestBody"]
            for response in operation["responses"].values():
                if response.get("content") == {}:
                    del response["content"]
    return document


def _span(node: Json, owner: Json, floor: Version) -> tuple[Version, Version | None]:
    """Return the version range of a property, within that of its schema and the versions of the models."""
    since = max(parse_version(marked.get("x-since", NO_VERSION)) for marked in (node, owner))
    ends = [parse_version(marked["x-until"]) for marked in (node, owner) if "x-until" in marked]
    return max(since, floor), min(ends, default=None)


def _always_required(detail: Json, owner: Json, floor: Version) -> bool:
    entries = [entry for entry in detail.get("x-history", []) if parse_version(entry["until"]) > floor]
    return _span(detail, owner, floor) == _span({}, owner, floor) and all(
        entry.get("required", True) for entry in entries
    )


def _nullable(schema: Json) -> Json:
    """Return the schema with null allowed and as the default, unless the schema has a default."""
    if "default" in schema:
        return schema
    null = {"type": "null"}
    if "anyOf" in schema:
        members = schema["anyOf"]
        return {**schema, "anyOf": members if null in members else [*members, null], "default": None}
    kind = schema.get("type")
    if isinstance(kind, list) and "null" in kind:
        return {**schema, "default": None}
    if kind in SCALARS and not {"const", "enum"} & schema.keys():
        return {**schema, "type": [kind, "null"], "default": None}
    about = {key: item for key, item in schema.items() if key in ("description", "deprecated", "x-undeclared")}
    shape = {key: item for key, item in schema.items() if key not in about}
    return {**about, "anyOf": [shape, null], "default": None}
