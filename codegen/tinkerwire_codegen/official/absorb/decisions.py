"""The decisions that an absorption leaves to a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...contract.bundle import load
from ...contract.protobuf import FILE
from ..comparison import Difference
from .absorption import Absorption

Json = dict[str, Any]
TODO = "TODO: "
REQUEST_INPUT = {"ForwardBackwardRequest": "ForwardBackwardInput"}
"""Schemas that have the fields of a message under another name."""


def list_decisions(absorption: Absorption, schema: Path) -> list[str]:
    """List the decisions for the contract in ``schema`` after an absorption, each in one line."""
    document = load(schema)
    decisions = [f"{difference}; record it by hand, or explain it" for difference in absorption.open]
    decisions += [
        f"{difference.theirs}: check family, operationId, tag and statuses, of which a release shows little"
        for difference in absorption.recorded
        if difference.kind == "endpoint" and difference.theirs is not None
    ]
    decisions += _unnamed_schemas(document, absorption)
    decisions += _protobuf_fields(document, absorption.recorded)
    counts = {
        file.name: count
        for file in [*sorted(schema.glob("*.yaml")), schema / FILE]
        if file.exists() and (count := file.read_text(encoding="utf-8").count(TODO))
    }
    if counts:
        places = ", ".join(f"{count} in {name}" for name, count in counts.items())
        decisions.append(f"descriptions marked TODO: reword them ({places})")
    return decisions


def _unnamed_schemas(document: Json, absorption: Absorption) -> list[str]:
    """List new schemas that the release does not name."""
    return [
        f"{name}: the release has no name for this schema; choose one"
        for name, schema in document["components"]["schemas"].items()
        if schema.get("x-undeclared") and schema.get("x-since") == absorption.version
    ]


def _protobuf_fields(document: Json, recorded: list[Difference]) -> list[str]:
    """List new protobuf fields without a property of the same name, which client and server do not encode."""
    schemas = document["components"]["schemas"]
    lines = []
    for difference in recorded:
        if difference.kind != "protobuf field" or difference.theirs is None:
            continue
        owner, name = difference.where, difference.theirs.partition(" =")[0].rpartition(" ")[2]
        schema = schemas.get(REQUEST_INPUT.get(owner, owner))
        if schema and name not in schema.get("properties", {}):
            lines.append(
                f"protobuf field {owner}.{name}: JSON lacks it; add a property with x-protobuf-only if models need it"
            )
    return lines
