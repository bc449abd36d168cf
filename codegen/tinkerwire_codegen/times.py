"""Since when and until when each thing of the contract exists, as the tables that the run time needs."""

from __future__ import annotations

from typing import Any

from tinkerwire_base.projection import parse_version

Span = tuple[str, "str | None"]

OLDEST = "0.1.0"
"""The first wire version there was."""

HEADER = '''"""When things of the wire exist, as (since, until); what is in every version is not listed."""

from __future__ import annotations

from collections.abc import Mapping

Span = tuple[str, "str | None"]

'''


def generate_times(document: dict[str, Any]) -> str:
    """The source of the module of time tables."""
    schemas = document["components"]["schemas"]
    operations = list(_operations(document))
    tables = {
        "TYPE_TIMES": ("Mapping[str, Span]", _spans(schemas)),
        "FIELD_TIMES": ("Mapping[str, Mapping[str, Span]]", _nested(schemas, "properties")),
        "OPERATION_TIMES": ("Mapping[str, Span]", _spans({op["operationId"]: op for op in operations})),
        "PARAMETER_TIMES": (
            "Mapping[str, Mapping[str, Span]]",
            {
                op["operationId"]: spans
                for op in operations
                if (spans := _spans({p["name"]: p for p in op.get("parameters", [])}))
            },
        ),
    }
    text = HEADER + f'NEWEST = "{newest(document)}"\n"""The newest wire version of the contract."""\n'
    for name, (kind, table) in tables.items():
        text += f"\n{name}: {kind} = {table!r}\n"
    return text


def newest(document: dict[str, Any]) -> str:
    """The newest wire version that the contract describes."""
    return str(document["info"]["version"])


def _operations(document: dict[str, Any]) -> Any:
    for item in document["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "operationId" in operation:
                yield operation


def _nested(schemas: dict[str, Any], key: str) -> dict[str, dict[str, Span]]:
    found = {name: _spans(schema.get(key, {}), schema.get("x-since")) for name, schema in schemas.items()}
    return {name: spans for name, spans in found.items() if spans}


def _spans(nodes: dict[str, Any], owner_since: str | None = None) -> dict[str, Span]:
    """The spans of those nodes that are younger than their owner, or than the wire itself, or that have an end."""
    start = owner_since or OLDEST
    found = {}
    for name, node in nodes.items():
        since, until = node.get("x-since", start), node.get("x-until")
        if until or parse_version(since) > parse_version(start):
            found[name] = (since, until)
    return found
