"""The versions in which each thing of the contract exists, as tables for the run time."""

from __future__ import annotations

from typing import Any

from tinkerwire_base.conversion.versioning import (
    SCALARS,
    SHAPE,
    VersionRange,
    oldest_version,
    parse_version,
    union_document,
)

from .constants import operations

HEADER = '''"""Versions of the things of the wire, as (since, until); things of every version are not listed."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire_base.conversion.versioning import VersionRange

'''


def generate_availability(document: dict[str, Any]) -> str:
    """Generate the source of the module of version tables."""
    schemas = document["components"]["schemas"]
    named = dict(operations(document))
    oldest = oldest_version(document)
    parameters = {name: {p["name"]: p for p in op.get("parameters", [])} for name, op in named.items()}
    bodies = {name: op.get("requestBody", {}).get("content", {}) for name, op in named.items()}
    ranges = "Mapping[str, VersionRange]"
    tables = {
        "TYPE_VERSIONS": (ranges, _ranges(schemas, oldest)),
        "FIELD_VERSIONS": (f"Mapping[str, {ranges}]", _fields(schemas, oldest)),
        "REQUIRED_VERSIONS": ("Mapping[str, Mapping[str, tuple[VersionRange, ...]]]", _required(document)),
        "VALUE_VERSIONS": (f"Mapping[str, Mapping[str, {ranges}]]", _enum_values(schemas, oldest)),
        "SCALAR_TYPE_VERSIONS": (f"Mapping[str, Mapping[str, {ranges}]]", _scalar_types(schemas)),
        "OPERATION_VERSIONS": (ranges, _ranges(named, oldest)),
        "PARAMETER_VERSIONS": (f"Mapping[str, {ranges}]", _nested_ranges(parameters, oldest)),
        "BODY_VERSIONS": (f"Mapping[str, {ranges}]", _nested_ranges(bodies, oldest)),
        "PROTOBUF_RESULT_VERSIONS": (ranges, _protobuf_results(named)),
    }
    info = document["info"]
    text = (
        HEADER
        + f"""NEWEST = {newest_version(document)!r}
\"\"\"The newest wire version of the contract.\"\"\"

VERSIONS: tuple[str, ...] = {tuple(info["x-versions"])!r}
\"\"\"The wire versions from which the contract was read, in order.\"\"\"

OLDEST_MODELS_VERSION = {info["x-models-since"]!r}
\"\"\"The oldest version whose requests the models fit; before it, requests had types of their own.\"\"\"
"""
    )
    for name, (annotation, table) in tables.items():
        text += f"\n{name}: {annotation} = {table!r}\n"
    return text


def newest_version(document: dict[str, Any]) -> str:
    """Return the newest wire version that the contract describes."""
    return str(document["info"]["version"])


def _protobuf_results(named: dict[str, dict[str, Any]]) -> dict[str, VersionRange]:
    """Return the ranges of the results that polls return as protobuf, by type."""
    ranges = {}
    for operation in named.values():
        for response in operation["responses"].values():
            media = response.get("content", {}).get("application/x-protobuf", {})
            for entry in media.get("schema", {}).get("x-protobuf-messages", []):
                since = entry.get("x-since", media.get("x-since"))
                ranges[entry["message"]] = (since, entry.get("x-until", media.get("x-until")))
    return ranges


def _nested_ranges(nodes: dict[str, dict[str, Any]], oldest: str) -> dict[str, dict[str, VersionRange]]:
    tables = {name: _ranges(inner, oldest) for name, inner in nodes.items()}
    return {name: ranges for name, ranges in tables.items() if ranges}


def _nested(schemas: dict[str, Any], key: str, oldest: str) -> dict[str, dict[str, VersionRange]]:
    tables = {name: _ranges(schema.get(key, {}), schema.get("x-since", oldest)) for name, schema in schemas.items()}
    return {name: ranges for name, ranges in tables.items() if ranges}


def _fields(schemas: dict[str, Any], oldest: str) -> dict[str, dict[str, VersionRange]]:
    """Collect the ranges of fields; ``*`` are keys that the contract does not name."""
    tables = _nested(schemas, "properties", oldest)
    for name, schema in schemas.items():
        closed = [e["until"] for e in schema.get("x-history", []) if e.get("schema") == {"additionalProperties": False}]
        if closed:
            tables.setdefault(name, {})["*"] = (max(closed, key=parse_version), None)
    return tables


def _required(document: dict[str, Any]) -> dict[str, dict[str, tuple[VersionRange, ...]]]:
    """Collect when a field is required that models treat as optional, because some version does not require it."""
    union = union_document(document)["components"]["schemas"]
    oldest = oldest_version(document)
    tables: dict[str, dict[str, tuple[VersionRange, ...]]] = {}
    for name, schema in document["components"]["schemas"].items():
        for field, detail in schema.get("properties", {}).items():
            ranges = _required_ranges(field, detail, schema, oldest)
            if ranges and field not in union[name].get("required", []):
                tables.setdefault(name, {})[field] = ranges
    return tables


def _required_ranges(
    field: str, detail: dict[str, Any], schema: dict[str, Any], oldest: str
) -> tuple[VersionRange, ...]:
    start = max(oldest, detail.get("x-since", oldest), schema.get("x-since", oldest), key=parse_version)
    entries = sorted(detail.get("x-history", []), key=lambda entry: parse_version(entry["until"]))
    now = field in schema.get("required", [])
    steps = [(entry["until"], entry.get("required", now)) for entry in entries]
    ranges = []
    for until, is_required in [*steps, (detail.get("x-until"), now)]:
        if is_required and (until is None or parse_version(until) > parse_version(start)):
            ranges.append((start, until))
        start = until or start
    return tuple(ranges)


def _enum_values(schemas: dict[str, Any], oldest: str) -> dict[str, dict[str, dict[str, VersionRange]]]:
    """Collect enum values that were added or removed, by each field whose only type is that enum."""
    enums = {name: _enum_ranges(schema, oldest) for name, schema in schemas.items() if "enum" in schema}
    tables: dict[str, dict[str, dict[str, VersionRange]]] = {}
    for name, schema in schemas.items():
        for field, detail in schema.get("properties", {}).items():
            members = [member for member in detail.get("anyOf", [detail]) if member != {"type": "null"}]
            enum = members[0].get("$ref", "").rpartition("/")[2] if len(members) == 1 else ""
            if enums.get(enum):
                tables.setdefault(name, {})[field] = enums[enum]
    return tables


def _scalar_types(schemas: dict[str, Any]) -> dict[str, dict[str, dict[str, VersionRange]]]:
    """Collect scalar types that a field accepts, at any depth, and did not accept in an earlier form."""
    tables: dict[str, dict[str, dict[str, VersionRange]]] = {}
    for name, schema in schemas.items():
        for field, detail in schema.get("properties", {}).items():
            for entry in detail.get("x-history", []):
                earlier = entry.get("schema", {})
                if SHAPE & earlier.keys():
                    # A field that accepts any number has always accepted integers.
                    before = _scalars(earlier, schemas) | (
                        {"integer"} if _scalars(earlier, schemas) & {"number"} else set()
                    )
                    for annotation in sorted(_scalars(detail, schemas) - before):
                        tables.setdefault(name, {}).setdefault(field, {})[annotation] = (entry["until"], None)
    return tables


def _scalars(node: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the scalar types of a schema's values outside of models, whose fields have ranges of their own."""
    if not isinstance(node, dict) or {"const", "enum", "properties"} & node.keys():
        return set()
    if "$ref" in node:
        return _scalars(schemas[node["$ref"].rpartition("/")[2]], schemas)
    types = node.get("type", [])
    inner = [*node.get("anyOf", []), *node.get("prefixItems", []), node.get("items"), node.get("additionalProperties")]
    return {*([types] if isinstance(types, str) else types)} & SCALARS | {
        annotation for part in inner for annotation in _scalars(part, schemas)
    }


def _enum_ranges(schema: dict[str, Any], oldest: str) -> dict[str, VersionRange]:
    since, until = schema.get("x-enum-since", {}), schema.get("x-enum-until", {})
    start = schema.get("x-since", oldest)
    return {
        value: (since.get(value, start), until.get(value))
        for value in schema["enum"]
        if value in since or value in until
    }


def _ranges(nodes: dict[str, Any], start: str) -> dict[str, VersionRange]:
    """Return the ranges of nodes that are newer than their owner or the oldest wire, or that were removed.

    A thing that was removed and added again counts from its return.
    """
    ranges = {}
    for name, node in nodes.items():
        since, until = node.get("x-since", start), node.get("x-until")
        since = max([since, *(gap["until"] for gap in node.get("x-absent", []))], key=parse_version)
        if until or parse_version(since) > parse_version(start):
            ranges[name] = (since, until)
    return ranges
