"""The protobuf messages of a release against those of the contract, and the lines that would record a change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...contract.protobuf import FILE, describe_proto, load_proto, project_proto
from ..comparison import Difference

Json = dict[str, Any]

FIELD = "protobuf field"
MESSAGE = "protobuf message"
ENUM = "protobuf enum"
VALUE = "protobuf value"
UNDESCRIBED_MODULES = frozenset({"tinker_api_pb2"})
"""The gRPC calls of 0.21.0 alone, which the contract leaves out."""


def read_contract_messages(folder: Path, version: str) -> Json:
    """The messages and enums that the contract in ``folder`` has at ``version``; none without a .proto."""
    if not (folder / FILE).exists():
        return {"messages": {}, "enums": {}}
    return describe_proto(project_proto(load_proto(folder), version))


def collect_release_messages(proto: Json) -> Json:
    """The messages and enums of all descriptors of a release that the contract describes."""
    found: Json = {"messages": {}, "enums": {}}
    for module, file in proto.items():
        if module not in UNDESCRIBED_MODULES:
            found["messages"] |= file["messages"]
            found["enums"] |= file["enums"]
    return found


def compare_messages(ours: Json, theirs: Json) -> list[Difference]:
    """Every difference between two sets of messages, in a fixed order."""
    found = [*_messages(ours["messages"], theirs["messages"]), *_enums(ours["enums"], theirs["enums"])]
    return sorted(found, key=lambda each: (each.where, each.kind, str(each.ours), str(each.theirs)))


def render_proto_change(difference: Difference, theirs: Json, version: str) -> str:
    """What to write into the .proto to record a difference as a change of ``version``."""
    kind, where = difference.kind, difference.where
    owner, _, name = where.rpartition(".")
    if kind in (MESSAGE, ENUM):
        if difference.theirs is None:
            return f"{kind.split()[1]} {difference.ours} {{  // until: {version}"
        return _block(kind.split()[1], difference.theirs, theirs, version)
    if kind == FIELD and difference.theirs is None:
        return f"// in {where}:\n{difference.ours}  // until: {version}"
    if kind == FIELD:
        return f"// in {where}:\n{difference.theirs}  // since: {version}"
    if kind == VALUE:
        end = f"until: {version}" if difference.theirs is None else f"since: {version}"
        return f"// in {where}:\n{difference.ours or difference.theirs}  // {end}"
    if kind == "protobuf type":
        line = _line(name, theirs["messages"][owner]["fields"][name])
        return f"// in {owner}:\n{line}  // was {difference.ours} until {version}"
    return (
        f"// in {owner}: {name} has another {kind.removeprefix('protobuf ')} in {version}; times say nothing of that,\n"
        f"// so think first. Old data would be misread; it may be a mistake of the release:\n"
        f"{_line(name, theirs['messages'][owner]['fields'][name])}"
    )


def _messages(ours: Json, theirs: Json) -> Iterator[Difference]:
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            yield Difference(MESSAGE, "messages", name, None)
        elif name not in ours:
            yield Difference(MESSAGE, "messages", None, name)
        else:
            yield from _fields(name, ours[name]["fields"], theirs[name]["fields"])


def _fields(owner: str, ours: Json, theirs: Json) -> Iterator[Difference]:
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            yield Difference(FIELD, owner, _line(name, ours[name]), None)
        elif name not in ours:
            yield Difference(FIELD, owner, None, _line(name, theirs[name]))
        else:
            for kind, key in (("number", "number"), ("type", "type"), ("presence", "optional"), ("oneof", "oneof")):
                old, new = ours[name].get(key), theirs[name].get(key)
                if old != new:
                    yield Difference(f"protobuf {kind}", f"{owner}.{name}", old, new)


def _enums(ours: Json, theirs: Json) -> Iterator[Difference]:
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            yield Difference(ENUM, "enums", name, None)
        elif name not in ours:
            yield Difference(ENUM, "enums", None, name)
        else:
            old, new = _values(ours[name]), _values(theirs[name])
            for value in sorted(old.keys() | new.keys()):
                if old.get(value) != new.get(value):
                    lines = [f"{value} = {each[value]};" if value in each else None for each in (old, new)]
                    yield Difference(VALUE, name, *lines)


def _values(enum: Json) -> Json:
    found: Json = enum.get("values", enum)
    return found


def _line(name: str, field: Json) -> str:
    label = "optional " if field.get("optional") else ""
    return f"{label}{field['type']} {name} = {field['number']};"


def _block(kind: str, name: str, theirs: Json, version: str) -> str:
    if kind == "enum":
        lines = [f"{value} = {number};" for value, number in _values(theirs["enums"][name]).items()]
    else:
        lines = [_line(field, each) for field, each in theirs["messages"][name]["fields"].items()]
    body = "\n".join(f"  // TODO: say in a sentence what it is.\n  {line}" for line in lines)
    return f"// TODO: say in a sentence what it is.\n{kind} {name} {{  // since: {version}\n{body}\n}}"
