"""Two sets of protobuf messages: what old bytes and new readers, or the reverse, make of each other."""

from __future__ import annotations

from pathlib import Path

from ..official.drift.protobuf import FIELD, MESSAGE, VALUE, compare_messages, read_contract_messages
from .change import Change

PART = "protobuf"
MEANINGS = {
    "protobuf number": "the field has another number: old bytes are misread",
    "protobuf type": "the field has another type: old bytes are misread",
    "protobuf presence": "whether the field can be left out has changed",
    "protobuf oneof": "the field excludes others than before",
}


def compare_protos(old: tuple[Path, str], new: tuple[Path, str]) -> list[Change]:
    """Changes between the messages of two contracts, each a folder and a version."""
    found = []
    for each in compare_messages(read_contract_messages(*old), read_contract_messages(*new)):
        added, gone = each.ours is None, each.theirs is None
        level = "breaking" if each.kind in ("protobuf number", "protobuf type") else "risky"
        where, reason = each.where, MEANINGS.get(each.kind, "")
        if each.kind == FIELD:
            line = each.theirs or each.ours
            where = f"{each.where}.{line.split(' = ')[0].split()[-1]}"
            reason = (
                f"a new field ({line}), which old readers keep aside"
                if added
                else "the field is gone; readers see none"
            )
            level = "safe" if added else "risky"
        elif each.kind == VALUE:
            reason = f"{each.ours or 'nothing'} became {each.theirs or 'nothing'}"
            level = "risky" if added or gone else "breaking"
        elif added or gone:
            name = each.theirs or each.ours
            where, level = name, "safe" if added else "breaking"
            reason = f"the {'message' if each.kind == MESSAGE else 'enum'} is {'new' if added else 'gone'}"
        elif each.kind in ("protobuf number", "protobuf type"):
            reason = f"{reason} ({each.ours} became {each.theirs})"
        found.append(Change(level, PART, where, reason, [PART]))
    return found
