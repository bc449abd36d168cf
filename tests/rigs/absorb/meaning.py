"""Differences in meaning between two contracts at one wire version: descriptions and names of schemas do not count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinkerwire_base.conversion.versioning import project
from tinkerwire_codegen.compare.contracts import compare_contracts
from tinkerwire_codegen.contract.protobuf import FILE, describe_proto, load_proto, project_proto

Json = dict[str, Any]
TEXTS = frozenset({"description", "summary"})


def compare_meaning(ours: Json, theirs: Json, version: str) -> list[str]:
    """Compare two loaded contracts at a version; each difference is one line."""
    changes = compare_contracts(*(_without_texts(project(document, version)) for document in (ours, theirs)))
    return [
        f"{', '.join(change.operations) if len(change.operations) < 4 else f'{len(change.operations)} operations'}: "
        f"{change.direction} {change.where}: {change.reason}".replace("  ", " ")
        for change in changes
        if not change.reason.startswith("written differently")
    ]


def compare_messages(ours: Path, theirs: Path, version: str) -> list[str]:
    """Compare the protobuf messages of two contracts at a version; each difference is one line."""
    left, right = (_describe(folder, version) for folder in (ours, theirs))
    return [
        f"protobuf {part[:-1]} {name}: {left[part].get(name)} and {right[part].get(name)}"
        for part in ("messages", "enums")
        for name in sorted(left[part].keys() | right[part].keys())
        if left[part].get(name) != right[part].get(name)
    ]


def _describe(folder: Path, version: str) -> Json:
    return describe_proto(project_proto(load_proto(folder), version)) if (folder / FILE).exists() else {}


def _without_texts(node: Any) -> Any:
    """Remove descriptions; a property of that name, which is a mapping, stays."""
    if isinstance(node, list):
        return [_without_texts(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_texts(item) for key, item in node.items() if not (key in TEXTS and isinstance(item, str))}
