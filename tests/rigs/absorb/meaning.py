"""Differences in meaning between two contracts: descriptions, and names that are not on the wire, do not count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tinkerwire_codegen.compare.contracts import compare_contracts
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_codegen.contract.export import build_openapi
from tinkerwire_codegen.contract.protobuf import FILE, describe_proto, load_proto, project_proto

Json = dict[str, Any]
TEXTS = frozenset({"description", "summary"})
MODEL_MARKS = ("x-mixin", "x-dataclass", "x-untagged", "x-essential", "x-array")


def compare_documents(ours: Path, theirs: Path, version: str) -> list[str]:
    """Compare the exported documents of two contracts at a version; each difference is one line."""
    return compare_plain(build_openapi(ours, version), build_openapi(theirs, version))


def compare_plain(ours: Json, theirs: Json) -> list[str]:
    """Compare two documents of one version; each difference is one line."""
    changes = compare_contracts(_without_texts(ours), _without_texts(theirs))
    return [
        f"{_name_operations(change.operations)}: {change.direction} {change.where}: {change.reason}"
        for change in changes
        if not change.reason.startswith("written differently")
    ]


def compare_messages(ours: Path, theirs: Path, version: str) -> list[str]:
    """Compare the protobuf messages of two contracts at a version; each difference is one line."""
    left, right = (_describe(folder, version) for folder in (ours, theirs))
    return [
        f"protobuf {part} {name}: {left[part].get(name)} and {right[part].get(name)}"
        for part in ("messages", "enums")
        for name in sorted(left[part].keys() | right[part].keys())
        if left[part].get(name) != right[part].get(name)
    ]


def compare_models(ours: Path, theirs: Path) -> list[tuple[str, str]]:
    """Compare what models have beyond the documents: fields that JSON lacks, and marks; each as (version, line)."""
    return sorted(_compare_models(_read_models(ours), _read_models(theirs)))


def _compare_models(left: Json, right: Json) -> Iterator[tuple[str, str]]:
    for name in left.keys() | right.keys():
        if name not in left or name not in right:
            owner = left.get(name) or right[name]
            if not owner.get("x-undeclared"):
                yield owner["x-since"], f"model {name}: {'missing' if name in left else 'extra'}"
            continue
        fields, others = (node.get("properties", {}) for node in (left[name], right[name]))
        for field in fields.keys() ^ others.keys():
            detail = fields.get(field) or others[field]
            since = detail.get("x-since", left[name]["x-since"])
            yield since, f"model {name}.{field}: {'missing' if field in fields else 'extra'}"
        for mark in MODEL_MARKS:
            if left[name].get(mark) != right[name].get(mark):
                yield (
                    left[name]["x-since"],
                    f"model {name}: {mark} is {right[name].get(mark)}, not {left[name].get(mark)}",
                )


def _read_models(folder: Path) -> Json:
    """Return the schemas of a contract by their names in the SDK."""
    schemas = load(folder)["components"]["schemas"]
    return {schema.get("x-sdk-name", name): schema for name, schema in schemas.items()}


def _name_operations(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 3 else f"{len(names)} operations"


def _describe(folder: Path, version: str) -> Json:
    proto = load_proto(folder) if (folder / FILE).exists() else None
    return describe_proto(project_proto(proto, version)) if proto else {"messages": {}, "enums": {}}


def _without_texts(node: Any) -> Any:
    """Remove descriptions; a property of that name, which is a mapping, stays."""
    if isinstance(node, list):
        return [_without_texts(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_texts(item) for key, item in node.items() if not (key in TEXTS and isinstance(item, str))}
