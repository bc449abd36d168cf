"""Comparison of two sets of protobuf messages: how readers understand bytes of the other set."""

from __future__ import annotations

from typing import Any

from ..official.drift.protobuf import FIELD, MESSAGE, VALUE, compare_messages
from .change import Change

PART = "protobuf"
MEANINGS = {
    "protobuf number": "the field has another number: old bytes are misread",
    "protobuf type": "the field has another type: old bytes are misread",
    "protobuf presence": "the field became optional, or is no longer optional",
    "protobuf oneof": "the field belongs to another oneof",
}


def compare_protos(old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    """Compare the messages of two contracts."""
    changes = []
    for difference in compare_messages(old, new):
        added, removed = difference.ours is None, difference.theirs is None
        level = "breaking" if difference.kind in ("protobuf number", "protobuf type") else "risky"
        where, reason = difference.where, MEANINGS.get(difference.kind, "")
        if difference.kind == FIELD:
            line = difference.theirs or difference.ours
            where = f"{difference.where}.{line.split(' = ')[0].split()[-1]}"
            reason = (
                f"a new field ({line}), which old readers keep as unknown"
                if added
                else "the field was removed; readers see it as unset"
            )
            level = "safe" if added else "risky"
        elif difference.kind == VALUE:
            reason = f"{difference.ours or 'nothing'} became {difference.theirs or 'nothing'}"
            level = "risky" if added or removed else "breaking"
        elif added or removed:
            name = difference.theirs or difference.ours
            where, level = name, "safe" if added else "breaking"
            reason = f"the {'message' if difference.kind == MESSAGE else 'enum'} is {'new' if added else 'removed'}"
        elif difference.kind in ("protobuf number", "protobuf type"):
            reason = f"{reason} ({difference.ours} became {difference.theirs})"
        changes.append(Change(level, PART, where, reason, [PART]))
    return changes
