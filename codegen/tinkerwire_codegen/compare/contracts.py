"""All changes between two plain contracts, by direction: what clients may send, and what they must read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .change import NO_EXAMPLE, Change, merge_changes
from .explain import OMITTED, UNKNOWN, Mismatch
from .schemas import Schemas, find_rejected_values
from .signatures import SignaturePart, index_operations, list_parts
from .structure import compare_structure

Json = dict[str, Any]

REQUIRED = "it is required now"


def compare_contracts(old: Json, new: Json) -> list[Change]:
    """Every change that a speaker of ``old`` would notice or not, the worst first."""
    return merge_changes(list(_Comparison(old, new).changes()))


class _Comparison:
    def __init__(self, old: Json, new: Json) -> None:
        self._old, self._new = Schemas(old, new), Schemas(new, old)
        self._before, self._after = index_operations(old), index_operations(new)
        self._known: dict[tuple[str, str, str], list[Change]] = {}

    def changes(self) -> Iterator[Change]:
        for key in sorted(self._before.keys() | self._after.keys()):
            if key not in self._after:
                yield Change("breaking", "request", key, "the operation is gone", [key])
            elif key not in self._before:
                yield Change("safe", "request", key, "the operation is new", [key])
            else:
                yield from self._operation(key)

    def _operation(self, key: str) -> Iterator[Change]:
        before, after = self._before[key], self._after[key]
        old = {each.part: each for each in list_parts(key, before)}
        new = {each.part: each for each in list_parts(key, after)}
        yield from self._body(key, before, after)
        yield from _statuses(key, before["responses"], after["responses"])
        for part in sorted(old.keys() | new.keys()):
            if part not in new:
                yield from _gone(old[part], after)
            elif part not in old:
                yield from _fresh(new[part], before)
            else:
                yield from self._surface(old[part], new[part])

    def _body(self, key: str, before: Json, after: Json) -> Iterator[Change]:
        was, now = (bool(each.get("requestBody", {}).get("required")) for each in (before, after))
        if now and not was:
            yield Change("breaking", "request", "body", "a body is required now", [key])
        elif was and not now and "requestBody" in after:
            yield Change("safe", "request", "body", "the body may be left out now", [key])

    def _surface(self, old: SignaturePart, new: SignaturePart) -> Iterator[Change]:
        if old.part.partition(" ")[0] in ("query", "header", "cookie", "path") and old.required != new.required:
            reason = "the parameter is required now" if new.required else "the parameter may be left out now"
            yield Change("breaking" if new.required else "safe", "request", old.part, reason, [old.operation])
        one, two = self._old.serialize_closure(old.schema), self._new.serialize_closure(new.schema)
        known = (old.direction, one + str(old.schema), two + str(new.schema))
        if known not in self._known:
            self._known[known] = list(self._schemas(old, new, same=one == two))
        for change in self._known[known]:
            where, shown_in = change.where or old.part, change.example_of or old.part
            example_of = "" if change.example is NO_EXAMPLE else shown_in
            operation = [old.operation]
            yield Change(change.level, change.direction, where, change.reason, operation, change.example, example_of)

    def _values(self, direction: str, one: Json, two: Json) -> list[Change]:
        """What trying values shows of two schemas."""
        found = [_fewer(direction, *each) for each in find_rejected_values(self._old, self._new, one, two)]
        missing = {change.where for change in found if change.reason == REQUIRED}
        more = find_rejected_values(self._new, self._old, two, one)
        # That a property is new goes without saying where it is required.
        news = [each for each in more if not (each[0].what == UNKNOWN and each[0].where in missing)]
        return found + [_more(direction, *each) for each in news]

    def _schemas(self, old: SignaturePart, new: SignaturePart, *, same: bool) -> Iterator[Change]:
        """Changes of a schema; values decide first, then what no value shows."""
        found: list[Change] = []
        if not same:
            found += self._values(old.direction, old.schema, new.schema)
            for name in sorted(self._old.untagged_members(old.schema) & self._new.untagged_members(new.schema)):
                member = {"$ref": f"#/components/schemas/{name}"}
                reported = {change.key for change in found}
                alone = self._values(old.direction, member, member)
                found += [replace(change, example_of=name) for change in alone if change.key not in reported]
        found += compare_structure(self._old, self._new, old, new, {change.where for change in found})
        if not same and not found:
            found.append(Change("safe", old.direction, "", "written another way; the same values are taken"))
        yield from found


def _fewer(direction: str, error: Mismatch, value: Any) -> Change:
    """What the old contract took and the new one refuses."""
    if direction == "request":
        reason = REQUIRED if error.what == OMITTED else f"{error.what} is refused now"
        return Change("breaking", direction, error.where, reason, [], value)
    reason = "it always comes now" if error.what == OMITTED else f"{error.what} no longer comes"
    return Change("safe", direction, error.where, reason, [], value)


def _more(direction: str, error: Mismatch, value: Any) -> Change:
    """What the new contract takes and the old one refused."""
    level, verb = ("safe", "is taken now") if direction == "request" else ("breaking", "may come now")
    reason = "it may be left out now" if error.what == OMITTED else f"{error.what} {verb}"
    return Change(level, direction, error.where, reason, [], value)


def _gone(part: SignaturePart, after: Json) -> Iterator[Change]:
    kind, _, name = part.part.partition(" ")
    if kind == "body":
        reason = f"{name} is no longer taken" if after.get("requestBody") else "no body is taken any more"
        yield Change("breaking", "request", "body", reason, [part.operation])
    elif part.direction == "request":
        reason = "the parameter is gone; a server ignores it or refuses it"
        yield Change("risky", "request", part.part, reason, [part.operation])
    elif kind in after["responses"]:
        level = "risky" if name.startswith("header ") else "breaking"
        yield Change(level, "response", part.part, "no longer comes", [part.operation])


def _fresh(part: SignaturePart, before: Json) -> Iterator[Change]:
    kind, _, name = part.part.partition(" ")
    if kind == "body":
        yield Change("safe", "request", "body", f"{name} is taken now", [part.operation])
    elif part.direction == "request":
        reason = "a new parameter, required" if part.required else "a new parameter, which may be left out"
        yield Change("breaking" if part.required else "safe", "request", part.part, reason, [part.operation])
    elif kind in before["responses"]:
        others = [media for media in before["responses"][kind].get("content", {}) if not name.startswith("header ")]
        reason = "may come now; who does not ask for it must not get it" if others else "comes now where nothing came"
        yield Change("risky" if others else "safe", "response", part.part, reason, [part.operation])


def _statuses(key: str, old: Json, new: Json) -> Iterator[Change]:
    for status in sorted(old.keys() - new.keys()):
        level = "breaking" if status.startswith("2") else "safe"
        yield Change(level, "response", status, "the status no longer comes", [key])
    for status in sorted(new.keys() - old.keys()):
        known = "default" in old or f"{status[0]}XX" in old
        level = "risky" if status.startswith(("2", "3")) or not known else "safe"
        yield Change(level, "response", status, "the status may come now", [key])
