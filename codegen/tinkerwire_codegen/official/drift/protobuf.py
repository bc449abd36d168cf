"""Comparison of the protobuf messages of a release with the contract, and the lines that record a change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...contract.protobuf import FILE, describe_proto, load_proto, project_proto
from ..comparison import Difference, compare_sets
from .schema_builder import TODO

Json = dict[str, Any]

FIELD = "protobuf field"
MESSAGE = "protobuf message"
ENUM = "protobuf enum"
VALUE = "protobuf value"
UNDESCRIBED_MODULES = frozenset({"tinker_api_pb2"})
"""Modules with only the gRPC calls of 0.21.0, which the contract does not describe."""


def read_contract_messages(folder: Path, version: str) -> Json:
    """Read the messages and enums of the contract in ``folder`` at ``version``, or empty ones without a .proto."""
    if not (folder / FILE).exists():
        return {"messages": {}, "enums": {}}
    return describe_proto(project_proto(load_proto(folder), version))


def collect_release_messages(proto: Json) -> Json:
    """Collect the messages and enums that the contract describes from all descriptors of a release."""
    collected: Json = {"messages": {}, "enums": {}}
    for module, file in proto.items():
        if module not in UNDESCRIBED_MODULES:
            collected["messages"] |= file["messages"]
            collected["enums"] |= file["enums"]
    return collected


def compare_messages(ours: Json, theirs: Json) -> list[Difference]:
    """Find every difference between two sets of messages, in a fixed order."""
    differences = [
        *_compare_messages(ours["messages"], theirs["messages"]),
        *_compare_enums(ours["enums"], theirs["enums"]),
    ]
    return sorted(differences, key=Difference.sort_key)


def render_proto_change(difference: Difference, theirs: Json, version: str) -> str:
    """Render the lines of the .proto that record a difference as a change of ``version``."""
    kind, where = difference.kind, difference.where
    owner, _, name = where.rpartition(".")
    if kind in (MESSAGE, ENUM):
        if difference.theirs is None:
            return f"{kind.split()[1]} {difference.ours} {{  // until: {version}"
        return _render_block(kind.split()[1], difference.theirs, theirs, version)
    if kind == FIELD and difference.theirs is None:
        return f"// in {where}:\n{difference.ours}  // until: {version}"
    if kind == FIELD:
        return f"// in {where}:\n{difference.theirs}  // since: {version}"
    if kind == VALUE:
        end = f"until: {version}" if difference.theirs is None else f"since: {version}"
        return f"// in {where}:\n{difference.ours or difference.theirs}  // {end}"
    if kind == "protobuf type":
        line = _render_field(name, theirs["messages"][owner]["fields"][name])
        return f"// in {owner}:\n{line}  // was {difference.ours} until {version}"
    return (
        f"// in {owner}: {name} has another {kind.removeprefix('protobuf ')} in {version}; comments cannot\n"
        f"// record that. Check it first: old data would be misread, and it may be a mistake of the release:\n"
        f"{_render_field(name, theirs['messages'][owner]['fields'][name])}"
    )


def _compare_messages(ours: Json, theirs: Json) -> Iterator[Difference]:
    yield from compare_sets(MESSAGE, "messages", set(ours), set(theirs))
    for name in ours.keys() & theirs.keys():
        yield from _compare_fields(name, ours[name]["fields"], theirs[name]["fields"])


def _compare_fields(owner: str, ours: Json, theirs: Json) -> Iterator[Difference]:
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            yield Difference(FIELD, owner, _render_field(name, ours[name]), None)
        elif name not in ours:
            yield Difference(FIELD, owner, None, _render_field(name, theirs[name]))
        else:
            for kind, key in (("number", "number"), ("type", "type"), ("presence", "optional"), ("oneof", "oneof")):
                old, new = ours[name].get(key), theirs[name].get(key)
                if old != new:
                    yield Difference(f"protobuf {kind}", f"{owner}.{name}", old, new)


def _compare_enums(ours: Json, theirs: Json) -> Iterator[Difference]:
    yield from compare_sets(ENUM, "enums", set(ours), set(theirs))
    for name in ours.keys() & theirs.keys():
        old, new = _values(ours[name]), _values(theirs[name])
        for value in old.keys() | new.keys():
            if old.get(value) != new.get(value):
                lines = [f"{value} = {values[value]};" if value in values else None for values in (old, new)]
                yield Difference(VALUE, name, *lines)


def _values(enum: Json) -> Json:
    values: Json = enum.get("values", enum)
    return values


def _render_field(name: str, field: Json) -> str:
    label = "optional " if field.get("optional") else ""
    return f"{label}{field['type']} {name} = {field['number']};"


def _render_block(kind: str, name: str, theirs: Json, version: str) -> str:
    if kind == "enum":
        lines = [f"{value} = {number};" for value, number in _values(theirs["enums"][name]).items()]
    else:
        lines = [_render_field(field, field_fact) for field, field_fact in theirs["messages"][name]["fields"].items()]
    body = "\n".join(f"  // {TODO}\n  {line}" for line in lines)
    return f"// {TODO}\n{kind} {name} {{  // since: {version}\n{body}\n}}"
