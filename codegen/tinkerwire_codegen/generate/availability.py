"""Since when and until when each thing of the contract exists, as the tables that the run time needs."""

from __future__ import annotations

from typing import Any

from tinkerwire_base.conversion.versioning import (
    OLDEST_VERSION,
    SCALARS,
    SHAPE,
    VersionRange,
    parse_version,
    union_document,
)

HEADER = '''"""When things of the wire exist, as (since, until); what is in every version is not listed."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire_base.conversion.versioning import VersionRange

'''


def generate_availability(document: dict[str, Any]) -> str:
    """The source of the module of time tables."""
    schemas = document["components"]["schemas"]
    operations = list(_operations(document))
    tables = {
        "TYPE_VERSIONS": ("Mapping[str, VersionRange]", _spans(schemas)),
        "FIELD_VERSIONS": ("Mapping[str, Mapping[str, VersionRange]]", _fields(schemas)),
        "REQUIRED_VERSIONS": ("Mapping[str, Mapping[str, tuple[VersionRange, ...]]]", _required(document)),
        "VALUE_VERSIONS": ("Mapping[str, Mapping[str, Mapping[str, VersionRange]]]", _values(schemas)),
        "SCALAR_TYPE_VERSIONS": ("Mapping[str, Mapping[str, Mapping[str, VersionRange]]]", _kinds(schemas)),
        "OPERATION_VERSIONS": ("Mapping[str, VersionRange]", _spans({op["operationId"]: op for op in operations})),
        "PARAMETER_VERSIONS": (
            "Mapping[str, Mapping[str, VersionRange]]",
            {
                op["operationId"]: spans
                for op in operations
                if (spans := _spans({p["name"]: p for p in op.get("parameters", [])}))
            },
        ),
    }
    text = HEADER + f'NEWEST = "{newest_version(document)}"\n"""The newest wire version of the contract."""\n'
    for name, (kind, table) in tables.items():
        text += f"\n{name}: {kind} = {table!r}\n"
    return text


def newest_version(document: dict[str, Any]) -> str:
    """The newest wire version that the contract describes."""
    return str(document["info"]["version"])


def _operations(document: dict[str, Any]) -> Any:
    for item in document["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "operationId" in operation:
                yield operation


def _nested(schemas: dict[str, Any], key: str) -> dict[str, dict[str, VersionRange]]:
    found = {name: _spans(schema.get(key, {}), schema.get("x-since")) for name, schema in schemas.items()}
    return {name: spans for name, spans in found.items() if spans}


def _fields(schemas: dict[str, Any]) -> dict[str, dict[str, VersionRange]]:
    """Of fields, and under ``*`` of keys that the contract does not name."""
    found = _nested(schemas, "properties")
    for name, schema in schemas.items():
        closed = [e["until"] for e in schema.get("x-history", []) if e.get("schema") == {"additionalProperties": False}]
        if closed:
            found.setdefault(name, {})["*"] = (max(closed, key=parse_version), None)
    return found


def _required(document: dict[str, Any]) -> dict[str, dict[str, tuple[VersionRange, ...]]]:
    """When a field is required that the models let be absent, because it is not required in every version."""
    everything = union_document(document)["components"]["schemas"]
    found: dict[str, dict[str, tuple[VersionRange, ...]]] = {}
    for name, schema in document["components"]["schemas"].items():
        for field, detail in schema.get("properties", {}).items():
            spans = _required_spans(field, detail, schema)
            if spans and field not in everything[name].get("required", []):
                found.setdefault(name, {})[field] = spans
    return found


def _required_spans(field: str, detail: dict[str, Any], schema: dict[str, Any]) -> tuple[VersionRange, ...]:
    start = max(
        OLDEST_VERSION, detail.get("x-since", OLDEST_VERSION), schema.get("x-since", OLDEST_VERSION), key=parse_version
    )
    entries = sorted(detail.get("x-history", []), key=lambda entry: parse_version(entry["until"]))
    now = field in schema.get("required", [])
    steps = [(entry["until"], entry.get("required", now)) for entry in entries]
    spans = []
    for until, is_required in [*steps, (detail.get("x-until"), now)]:
        if is_required and (until is None or parse_version(until) > parse_version(start)):
            spans.append((start, until))
        start = until or start
    return tuple(spans)


def _values(schemas: dict[str, Any]) -> dict[str, dict[str, dict[str, VersionRange]]]:
    """The values of enums that came later or went, by each field that is such an enum and nothing else."""
    enums = {name: _enum_spans(schema) for name, schema in schemas.items() if "enum" in schema}
    found: dict[str, dict[str, dict[str, VersionRange]]] = {}
    for name, schema in schemas.items():
        for field, detail in schema.get("properties", {}).items():
            members = [member for member in detail.get("anyOf", [detail]) if member != {"type": "null"}]
            enum = members[0].get("$ref", "").rpartition("/")[2] if len(members) == 1 else ""
            if enums.get(enum):
                found.setdefault(name, {})[field] = enums[enum]
    return found


def _kinds(schemas: dict[str, Any]) -> dict[str, dict[str, dict[str, VersionRange]]]:
    """Kinds of scalars that a field takes, at any depth, and did not take in an earlier form."""
    found: dict[str, dict[str, dict[str, VersionRange]]] = {}
    for name, schema in schemas.items():
        for field, detail in schema.get("properties", {}).items():
            for entry in detail.get("x-history", []):
                earlier = entry.get("schema", {})
                if SHAPE & earlier.keys():
                    # Where any number is taken, whole ones always were.
                    before = _scalars(earlier, schemas) | (
                        {"integer"} if _scalars(earlier, schemas) & {"number"} else set()
                    )
                    for kind in sorted(_scalars(detail, schemas) - before):
                        found.setdefault(name, {}).setdefault(field, {})[kind] = (entry["until"], None)
    return found


def _scalars(node: Any, schemas: dict[str, Any]) -> set[str]:
    """The scalar types of a schema's values outside of models, whose fields have times of their own."""
    if not isinstance(node, dict) or {"const", "enum", "properties"} & node.keys():
        return set()
    if "$ref" in node:
        return _scalars(schemas[node["$ref"].rpartition("/")[2]], schemas)
    types = node.get("type", [])
    inner = [*node.get("anyOf", []), *node.get("prefixItems", []), node.get("items"), node.get("additionalProperties")]
    return {*([types] if isinstance(types, str) else types)} & SCALARS | {
        kind for part in inner for kind in _scalars(part, schemas)
    }


def _enum_spans(schema: dict[str, Any]) -> dict[str, VersionRange]:
    since, until = schema.get("x-enum-since", {}), schema.get("x-enum-until", {})
    start = schema.get("x-since", OLDEST_VERSION)
    return {
        value: (since.get(value, start), until.get(value))
        for value in schema["enum"]
        if value in since or value in until
    }


def _spans(nodes: dict[str, Any], owner_since: str | None = None) -> dict[str, VersionRange]:
    """The spans of those nodes that are younger than their owner, or than the wire itself, or that have an end.

    What went and came back is there since it came back.
    """
    start = owner_since or OLDEST_VERSION
    found = {}
    for name, node in nodes.items():
        since, until = node.get("x-since", start), node.get("x-until")
        since = max([since, *(gap["until"] for gap in node.get("x-absent", []))], key=parse_version)
        if until or parse_version(since) > parse_version(start):
            found[name] = (since, until)
    return found
