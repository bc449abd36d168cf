"""Behaviour of the SDK that OpenAPI cannot express, recorded beside the contract, and its differences from a release.

``sdk/behaviour.json`` below the contract holds kinds of facts, places, and the values by the version that introduced
them; null marks the end. ``record_behaviour`` writes it; nobody edits it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tinkerwire_base.conversion.versioning import parse_version

from ..comparison import Difference, list_unread_endpoints
from ..release.problems import is_unread

Json = dict[str, Any]
FILE = "sdk/behaviour.json"
CALL_HEADER, SENT_HEADER = "header of a call", "request header"
CALL_KINDS = frozenset({"timeout", "dump", CALL_HEADER})
"""Kinds whose places are endpoints."""
BEHAVIOUR_KINDS = frozenset(
    {
        *("accepted names", "computed field", "constraint", "dataclass field", "dump", "encoding", "excluded field"),
        *(CALL_HEADER, SENT_HEADER, "response header", "protobuf options", "protobuf package", "protobuf service"),
        *("query format", "serializer", "setting", "timeout", "validator"),
    }
)


def has_record(folder: Path) -> bool:
    """Report whether a contract has recorded behaviour."""
    return (folder / FILE).exists()


def read_record(folder: Path, version: str) -> Json:
    """Read the recorded behaviour at a version, by kind and place.

    Raises:
        ValueError: the file is not JSON of that form.
    """
    return {
        kind: {where: value for where, values in places.items() if (value := _value_at(values, version)) is not None}
        for kind, places in _load(folder).items()
    }


def record_behaviour(folder: Path, version: str, behaviour: Json) -> None:
    """Record the behaviour of a release as that of ``version`` and later; versions are recorded in order."""
    record = _load(folder) if has_record(folder) else {}
    for kind in sorted(record.keys() | behaviour.keys()):
        places, new = record.setdefault(kind, {}), behaviour.get(kind, {})
        for where in sorted(places.keys() | new.keys()):
            values = places.setdefault(where, {})
            if _value_at(values, version) != new.get(where):
                values[version] = new.get(where)
    file = folder / FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(_render(record), encoding="utf-8")


def complete_behaviour(recorded: Json, document: Json, facts: Json) -> Json:
    """Return the behaviour of a release, with the recorded values for the parts that are not understood.

    Calls whose path is not understood keep the record of each endpoint that may be theirs.
    """
    release: Json = facts["behaviour"]
    unread = list_unread_endpoints(document, facts)
    completed: Json = {}
    for kind in recorded.keys() | release.keys():
        ours, theirs = recorded.get(kind, {}), release.get(kind, {})
        kept = {where: value for where, value in ours.items() if kind in CALL_KINDS and where in unread}
        completed[kind] = _complete(ours, {**kept, **theirs})
    return completed


def _complete(recorded: Any, read: Json) -> Json:
    """Replace the values that are not understood by those on record; without one, they are left out."""
    old = recorded if isinstance(recorded, dict) else {}
    completed: Json = {}
    for name, value in read.items():
        if is_unread(value):
            completed |= {name: old[name]} if name in old else {}
        elif isinstance(value, dict):
            inner = _complete(old.get(name), value)
            completed |= {name: inner} if inner or not value else {}
        else:
            completed[name] = value
    return completed


def compare_behaviour(recorded: Json, release: Json) -> list[Difference]:
    """Find every difference between recorded behaviour and that of a release, in a fixed order."""
    differences: list[Difference] = []
    for kind in recorded.keys() | release.keys():
        ours, theirs = recorded.get(kind, {}), release.get(kind, {})
        for where in ours.keys() | theirs.keys():
            old, new = ours.get(where), theirs.get(where)
            if old == new:
                continue
            split = _split_headers if kind == CALL_HEADER else _whole
            differences += split(kind, where, old, new)
    renamed = {difference.where for difference in differences if difference.kind == SENT_HEADER}
    kept = [d for d in differences if d.kind != CALL_HEADER or d.where.rpartition(" ")[2] not in renamed]
    return sorted(kept, key=Difference.sort_key)


def render_behaviour(difference: Difference, version: str) -> str:
    """Render the entry of the record for a difference."""
    values = {version: difference.theirs}
    return (
        f"{json.dumps(difference.kind)}: {{{json.dumps(difference.where)}: {json.dumps(values, ensure_ascii=False)}}}"
    )


def _whole(kind: str, where: str, old: Any, new: Any) -> Iterator[Difference]:
    yield Difference(kind, where, old, new)


def _split_headers(kind: str, where: str, old: list[str] | None, new: list[str] | None) -> Iterator[Difference]:
    """Yield a difference for each header of a call, which both sides list as ``name: value``."""
    sides = []
    for lines in (old or [], new or []):
        values: dict[str, list[str]] = {}
        for line in lines:
            name, _, value = line.partition(": ")
            values.setdefault(name, []).append(value)
        sides.append(values)
    for name in sides[0].keys() | sides[1].keys():
        if sides[0].get(name) != sides[1].get(name):
            yield Difference(kind, f"{where} {name}", sides[0].get(name), sides[1].get(name))


def _value_at(values: Json, version: str) -> Any:
    now = parse_version(version)
    reached = [start for start in values if parse_version(start) <= now]
    return values[max(reached, key=parse_version)] if reached else None


def _load(folder: Path) -> Json:
    try:
        record: Json = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{folder / FILE}: must be JSON ({error}); restore it, or record the releases again"
        ) from error
    return record


def _render(record: Json) -> str:
    """Render the record with one line for each place, so that its changes can be read."""
    kinds = []
    for kind, places in record.items():
        lines = [f"  {json.dumps(where)}: {json.dumps(values, ensure_ascii=False)}" for where, values in places.items()]
        kinds.append(f" {json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(kinds) + "\n}\n"
