"""Drift of a release: what it added, removed or changed, with the YAML that records it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tinkerwire_base.conversion.versioning import project

from ...contract.bundle import find_refs, load
from ..comparison import Difference, compare_facts, list_operations
from ..known_differences import exclude_known
from ..private_names import align_private_names
from .behaviour import (
    BEHAVIOUR_KINDS,
    CALL_KINDS,
    compare_behaviour,
    complete_behaviour,
    has_record,
    read_record,
    render_behaviour,
)
from .behaviour import FILE as BEHAVIOUR_FILE
from .contract_source import ContractSource, Json, Place
from .edits import EditBuilder
from .protobuf import collect_release_messages, compare_messages, read_contract_messages, render_proto_change


@dataclass(frozen=True)
class Drift:
    """One change of the wire that the contract does not have yet.

    ``snippet`` is the YAML to add to ``file``; ``file`` is empty if a new thing may go into any.
    """

    change: str
    kind: str
    where: str
    contract: Any
    release: Any
    file: str
    snippet: str

    @property
    def title(self) -> str:
        """Return the change in one line."""
        if self.kind in BEHAVIOUR_KINDS and self.change != "changed":
            value = self.release if self.change == "added" else self.contract
            return f"{self.kind} of {self.where} {self.change}: {value!r}"
        if self.change == "added":
            return f"{self.kind} {self.release} added to {self.where}"
        if self.change == "removed":
            return f"{self.kind} {self.contract} removed from {self.where}"
        return f"{self.kind} of {self.where} changed from {self.contract!r} to {self.release!r}"


def find_drift(folder: Path, facts: Json, version: str) -> list[Drift]:
    """Find all differences between the contract in ``folder`` at ``version`` and the facts of a release.

    Raises:
        ValueError: the contract has errors, or does not reach back to that version.
    """
    document = project(load(folder), version)
    facts = align_private_names(document, facts)
    edits = EditBuilder(ContractSource(folder, version), facts)
    differences = _without_duplicates(exclude_known(compare_facts(document, facts), folder))
    moves, remaining = _split_moves(differences, document, facts)
    drift = [_describe_move(*difference, edits) for difference in moves]
    for difference in remaining:
        edit = edits.build(difference)
        drift.append(_describe(difference, edit.file, render_yaml(edit.nodes)))
    theirs = collect_release_messages(facts["proto"])
    for difference in compare_messages(read_contract_messages(folder, version), theirs):
        drift.append(_describe(difference, "the .proto", render_proto_change(difference, theirs, version)))
    if has_record(folder):
        reported = {name for d in drift if d.kind in ("endpoint", "path") for name in (d.contract, d.release)}
        reported |= {d.release for d in drift if d.change == "added" and d.kind == "type"}
        recorded = read_record(folder, version)
        for difference in compare_behaviour(recorded, complete_behaviour(recorded, document, facts)):
            if not _is_of(difference, reported):
                drift.append(_describe(difference, BEHAVIOUR_FILE, render_behaviour(difference, version)))
    return drift


def _is_of(difference: Difference, reported: set[str]) -> bool:
    """Report whether a difference belongs to a type or an endpoint that is itself reported."""
    if difference.kind in CALL_KINDS:
        return " ".join(difference.where.split(" ")[:2]) in reported
    return difference.kind not in OPERATION_KINDS and difference.where.partition(".")[0] in reported


def render_yaml(nodes: dict[Place, Any]) -> str:
    """Render new nodes as YAML, each at its place."""
    tree: Json = {}
    for place, value in nodes.items():
        here = tree
        for step in place[:-1]:
            here = here.setdefault(step, {})
        here[place[-1]] = value
    return yaml.dump(tree, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=110).strip() if tree else ""


class _PlainDumper(yaml.SafeDumper):
    """Dumper without YAML anchors, because a person copies parts of the output."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _describe(difference: Difference, file: str, snippet: str) -> Drift:
    ours, theirs = difference.ours, difference.theirs
    return Drift(_kind_of_change(difference), difference.kind, difference.where, ours, theirs, file, snippet)


def _kind_of_change(difference: Difference) -> str:
    """Return added, removed or changed; a type, default or the like always exists, so it can only change."""
    if (
        difference.kind in BEHAVIOUR_KINDS
        or difference.kind in _THINGS
        or (difference.kind == "type" and difference.where == "types")
    ):
        return "added" if difference.ours is None else "removed" if difference.theirs is None else "changed"
    return "changed"


OPERATION_KINDS = CALL_KINDS | {"request header", "response header"}
_THINGS = frozenset({"field", "value", "member", "endpoint", "query", "result", "media type"}) | frozenset(
    {"protobuf field", "protobuf message", "protobuf enum", "protobuf value"}
)


def _without_duplicates(differences: list[Difference]) -> list[Difference]:
    """Remove a first default beside becoming optional, which is the same change."""
    optional = {
        difference.where for difference in differences if difference.kind == "required" and not difference.theirs
    }
    return [
        difference for difference in differences if not (difference.kind == "default" and difference.where in optional)
    ]


def _split_moves(
    differences: list[Difference], document: Json, facts: Json
) -> tuple[list[tuple[Difference, Difference]], list[Difference]]:
    """Split off pairs of a removed and an added endpoint that are alike: these changed their path."""
    removed = [difference for difference in differences if difference.kind == "endpoint" and difference.theirs is None]
    added = [difference for difference in differences if difference.kind == "endpoint" and difference.ours is None]
    operations = list_operations(document)
    moves = []
    for old in removed:
        candidates = [
            difference
            for difference in added
            if _contract_signature(old.ours, operations) == _release_signature(difference.theirs, facts)
        ]
        closest = difflib.get_close_matches(old.ours, [difference.theirs for difference in candidates], n=1, cutoff=0.5)
        match = next((difference for difference in candidates if difference.theirs in closest), None)
        if match:
            added.remove(match)
            moves.append((old, match))
    matched = [difference for pair in moves for difference in pair]
    return moves, [difference for difference in differences if difference not in matched]


def _describe_move(old: Difference, new: Difference, edits: EditBuilder) -> Drift:
    nodes = {**edits.build(old).nodes, **edits.build(new).nodes}
    return Drift("changed", "path", old.ours, old.ours, new.theirs, edits.build(old).file, render_yaml(nodes))


def _contract_signature(key: str, operations: dict[str, Json]) -> tuple[str, set[str], set[str]]:
    operation = operations[key]
    body, ok_response = operation.get("requestBody", {}), operation["responses"].get("200", {})
    return key.partition(" ")[0], _referenced_types(body), _referenced_types(ok_response)


def _release_signature(key: str, facts: Json) -> tuple[str, set[str], set[str]]:
    fact = facts["endpoints"][key]
    request, response = (str(fact.get(part) or "null").removesuffix("#inmem") for part in ("request", "response"))
    return key.partition(" ")[0], {request} - {"null", "inline"}, {response} - {"null"}


def _referenced_types(holder: Json) -> set[str]:
    return {target.rpartition("/")[2] for _, target in find_refs(holder)}
