"""The family, and so the file, that a new type or endpoint belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...contract.bundle import find_refs
from ..comparison import Difference
from ..drift.edits import Edit
from .contract_files import ContractFiles

Json = dict[str, Any]
SCHEMAS = "#/components/schemas/"


class FamilyChooser:
    """Chooser of families; families never refer to each other in a cycle."""

    def __init__(self, files: ContractFiles, facts: Json) -> None:
        """Initialize with the contract and the facts of the release."""
        self._files, self._facts = files, facts

    def choose(self, difference: Difference, edit: Edit) -> str:
        """Return the file for the new nodes of an edit."""
        if difference.kind == "endpoint":
            return self._similar_path(str(difference.theirs))
        name = str(difference.theirs)
        candidates = [*self._users(name), *self._used(edit), *self._similar_names(name)]
        candidates += self._files.families()
        return next((file for file in candidates if not self._is_cyclic(name, edit, file)), candidates[-1])

    def _homes(self) -> dict[str, str]:
        return {name: file for file in self._files.families() for name in self._files.schemas(file)}

    def _users(self, name: str) -> Iterator[str]:
        """Yield the files of the types and endpoints of the release that use a type."""
        homes, pattern = self._homes(), re.compile(rf"\b{re.escape(name)}\b")
        for owner, fact in self._facts["types"].items():
            text = str([fact.get("target"), fact.get("members"), *[f["type"] for f in fact["fields"].values()]])
            if owner != name and owner in homes and pattern.search(text):
                yield homes[owner]
        for key, fact in self._facts["endpoints"].items():
            if name in (fact.get("request"), fact["response"]):
                yield self._files.source.find_operation(key)[0] or self._similar_path(key)

    def _used(self, edit: Edit) -> Iterator[str]:
        homes = self._homes()
        for _, target in find_refs(list(edit.nodes.values())):
            if target.removeprefix(SCHEMAS) in homes:
                yield homes[target.removeprefix(SCHEMAS)]

    def _similar_names(self, name: str) -> list[str]:
        words = split_words(name)
        scores: dict[str, float] = {}
        for other, file in self._homes().items():
            scores[file] = max(scores.get(file, 0), similarity(words, split_words(other)))
        return sorted(scores, key=lambda file: -scores[file])

    def _similar_path(self, key: str) -> str:
        words = split_words(key.partition(" ")[2])
        scores = {
            (similarity(words, split_words(path)), -index): file
            for index, file in enumerate(self._files.families())
            for path in self._files.contents[file].get("paths") or {}
        }
        return scores[max(scores)] if scores else self._files.families()[0]

    def _is_cyclic(self, name: str, edit: Edit, file: str) -> bool:
        """Report whether families refer to each other in a cycle once ``file`` has the type."""
        homes = {**self._homes(), name: file}
        edges: dict[str, set[str]] = {}
        for owner_file in self._files.families():
            for _, target in find_refs(self._files.schemas(owner_file)):
                self._add_edge(edges, homes, owner_file, target)
        for _, target in find_refs(list(edit.nodes.values())):
            self._add_edge(edges, homes, file, target)
        for user in self._users(name):
            self._add_edge(edges, homes, user, SCHEMAS + name)
        return _has_cycle(edges)

    def _add_edge(self, edges: dict[str, set[str]], homes: dict[str, str], source: str, target: str) -> None:
        home = homes.get(target.removeprefix(SCHEMAS))
        if home and home != source:
            edges.setdefault(source, set()).add(home)


def _has_cycle(edges: dict[str, set[str]]) -> bool:
    remaining = {source: set(targets) for source, targets in edges.items()}
    while True:
        ends = {target for targets in remaining.values() for target in targets} - remaining.keys()
        free = [source for source, targets in remaining.items() if targets <= ends]
        if not free:
            return bool(remaining)
        for source in free:
            del remaining[source]


def split_words(text: str) -> set[str]:
    """Return the words of a name or path, in lower case and singular."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)
    return {word.lower().removesuffix("s") for word in words} - {"api", "v", "1", "request", "response", "type"}


def similarity(left: set[str], right: set[str]) -> float:
    """Return the share of words that two names have in common."""
    return len(left & right) / max(1, len(left | right))
