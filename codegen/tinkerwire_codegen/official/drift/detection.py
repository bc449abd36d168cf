"""What a release says otherwise than the contract: added, removed or changed, with what would record it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tinkerwire_base.conversion.versioning import project

from ...contract.bundle import find_refs, load
from ..comparison import Difference, compare_facts
from ..known_differences import exclude_known
from .contract_source import ContractSource, Json, Place
from .edits import EditBuilder
from .protobuf import collect_release_messages, compare_messages, read_contract_messages, render_proto_change


@dataclass(frozen=True)
class Drift:
    """One change of the wire that the contract does not have yet.

    ``file`` and ``snippet`` say what to write where; ``file`` is empty when a new thing may go into any.
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
        """The change in one line."""
        if self.change == "added":
            return f"{self.kind} {self.release} added to {self.where}"
        if self.change == "removed":
            return f"{self.kind} {self.contract} removed from {self.where}"
        return f"{self.kind} of {self.where} changed from {self.contract!r} to {self.release!r}"


def find_drift(folder: Path, facts: Json, version: str) -> list[Drift]:
    """All differences between the contract in ``folder`` at ``version`` and the facts of a release.

    Raises:
        ValueError: the contract is not sound, or does not reach back to that version.
    """
    document = project(load(folder), version)
    edits = EditBuilder(ContractSource(folder, version), facts)
    differences = _without_echoes(exclude_known(compare_facts(document, facts)))
    moved, others = _moves(differences, document, facts)
    found = [_moved(*each, edits) for each in moved]
    found += [_drift(each, edits) for each in others]
    theirs = collect_release_messages(facts["proto"])
    for each in compare_messages(read_contract_messages(folder, version), theirs):
        snippet = render_proto_change(each, theirs, version)
        found.append(Drift(_change(each), each.kind, each.where, each.ours, each.theirs, "the .proto", snippet))
    return found


def render(nodes: dict[Place, Any]) -> str:
    """New nodes as YAML, each where it belongs."""
    tree: Json = {}
    for place, value in nodes.items():
        here = tree
        for step in place[:-1]:
            here = here.setdefault(step, {})
        here[place[-1]] = value
    return yaml.dump(tree, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110).strip() if tree else ""


class _Plain(yaml.SafeDumper):
    """YAML without anchors: a person copies parts of it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _drift(difference: Difference, edits: EditBuilder) -> Drift:
    edit = edits.edit(difference)
    snippet = render(edit.nodes)
    ours, theirs = difference.ours, difference.theirs
    return Drift(_change(difference), difference.kind, difference.where, ours, theirs, edit.file, snippet)


def _change(difference: Difference) -> str:
    """Things are added or removed; of a type, default or the like there always is one, so it changed."""
    if difference.kind in _THINGS or (difference.kind == "type" and difference.where == "types"):
        return "added" if difference.ours is None else "removed" if difference.theirs is None else "changed"
    return "changed"


_THINGS = frozenset({"field", "value", "member", "endpoint", "query", "result", "media type"}) | frozenset(
    {"protobuf field", "protobuf message", "protobuf enum", "protobuf value"}
)


def _without_echoes(differences: list[Difference]) -> list[Difference]:
    """The differences without a first default beside becoming optional, which is the same change."""
    optional = {each.where for each in differences if each.kind == "required" and not each.theirs}
    return [each for each in differences if not (each.kind == "default" and each.where in optional)]


def _moves(
    differences: list[Difference], document: Json, facts: Json
) -> tuple[list[tuple[Difference, Difference]], list[Difference]]:
    """Endpoints of which one is gone and one like it is new, which is one of another path; and the rest."""
    gone = [each for each in differences if each.kind == "endpoint" and each.theirs is None]
    new = [each for each in differences if each.kind == "endpoint" and each.ours is None]
    operations = dict(_operations(document))
    moved = []
    for old in gone:
        alike = [each for each in new if _ours(old.ours, operations) == _theirs(each.theirs, facts)]
        near = difflib.get_close_matches(old.ours, [each.theirs for each in alike], n=1, cutoff=0.5)
        match = next((each for each in alike if each.theirs in near), None)
        if match:
            new.remove(match)
            moved.append((old, match))
    done = [each for pair in moved for each in pair]
    return moved, [each for each in differences if each not in done]


def _moved(old: Difference, new: Difference, edits: EditBuilder) -> Drift:
    nodes = {**edits.edit(old).nodes, **edits.edit(new).nodes}
    return Drift("changed", "path", old.ours, old.ours, new.theirs, edits.edit(old).file, render(nodes))


def _operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            steps = ["{}" if step.startswith("{") else step for step in path.split("/")]
            yield f"{method.upper()} {'/'.join(steps)}", operation


def _ours(key: str, operations: dict[str, Json]) -> tuple[str, set[str], set[str]]:
    operation = operations[key]
    body, answer = operation.get("requestBody", {}), operation["responses"].get("200", {})
    return key.partition(" ")[0], _named(body), _named(answer)


def _theirs(key: str, facts: Json) -> tuple[str, set[str], set[str]]:
    fact = facts["endpoints"][key]
    request, response = (str(fact.get(part) or "null").removesuffix("#inmem") for part in ("request", "response"))
    return key.partition(" ")[0], {request} - {"null", "inline"}, {response} - {"null"}


def _named(holder: Json) -> set[str]:
    return {target.rpartition("/")[2] for _, target in find_refs(holder)}
