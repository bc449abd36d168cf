"""All changes between two plain contracts, for what clients send and for what they read."""

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
    """Find every change between two contracts, the most severe first."""
    return merge_changes(list(_Comparison(old, new).changes()))


class _Comparison:
    def __init__(self, old: Json, new: Json) -> None:
        self._old, self._new = Schemas(old, new), Schemas(new, old)
        self._before, self._after = index_operations(old), index_operations(new)
        self._known: dict[tuple[str, str, str], list[Change]] = {}

    def changes(self) -> Iterator[Change]:
        """Yield the changes of all operations, unmerged."""
        for key in sorted(self._before.keys() | self._after.keys()):
            if key not in self._after:
                yield Change("breaking", "request", key, "the operation was removed", [key])
            elif key not in self._before:
                yield Change("safe", "request", key, "the operation is new", [key])
            else:
                yield from self._compare_operation(key)

    def _compare_operation(self, key: str) -> Iterator[Change]:
        before, after = self._before[key], self._after[key]
        old = {part.part: part for part in list_parts(key, before)}
        new = {part.part: part for part in list_parts(key, after)}
        yield from self._compare_body(key, before, after)
        yield from _compare_statuses(key, before["responses"], after["responses"])
        for part in sorted(old.keys() | new.keys()):
            if part not in new:
                yield from _removed_part(old[part], after)
            elif part not in old:
                yield from _added_part(new[part], before)
            else:
                yield from self._compare_part(old[part], new[part])

    def _compare_body(self, key: str, before: Json, after: Json) -> Iterator[Change]:
        was_required, is_required = (
            bool(operation.get("requestBody", {}).get("required")) for operation in (before, after)
        )
        if is_required and not was_required:
            yield Change("breaking", "request", "body", "a body is required now", [key])
        elif was_required and not is_required and "requestBody" in after:
            yield Change("safe", "request", "body", "the body may be omitted now", [key])

    def _compare_part(self, old: SignaturePart, new: SignaturePart) -> Iterator[Change]:
        if old.part.partition(" ")[0] in ("query", "header", "cookie", "path") and old.required != new.required:
            reason = "the parameter is required now" if new.required else "the parameter may be omitted now"
            yield Change("breaking" if new.required else "safe", "request", old.part, reason, [old.operation])
        old_closure, new_closure = self._old.serialize_closure(old.schema), self._new.serialize_closure(new.schema)
        key = (old.direction, old_closure + str(old.schema), new_closure + str(new.schema))
        if key not in self._known:
            self._known[key] = list(self._compare_schemas(old, new, same=old_closure == new_closure))
        for change in self._known[key]:
            where, shown_in = change.where or old.part, change.example_of or old.part
            example_of = "" if change.example is NO_EXAMPLE else shown_in
            operation = [old.operation]
            yield Change(change.level, change.direction, where, change.reason, operation, change.example, example_of)

    def _compare_values(self, direction: str, old: Json, new: Json) -> list[Change]:
        """Compare two schemas by trying example values."""
        changes = [
            _rejected_change(direction, *rejection)
            for rejection in find_rejected_values(self._old, self._new, old, new)
        ]
        now_required = {change.where for change in changes if change.reason == REQUIRED}
        accepted = find_rejected_values(self._new, self._old, new, old)
        # A property that is now required needs no second report as new.
        news = [
            rejection
            for rejection in accepted
            if not (rejection[0].what == UNKNOWN and rejection[0].where in now_required)
        ]
        return changes + [_accepted_change(direction, *rejection) for rejection in news]

    def _compare_schemas(self, old: SignaturePart, new: SignaturePart, *, same: bool) -> Iterator[Change]:
        """Yield the changes of a schema: first those that example values show, then the others."""
        changes: list[Change] = []
        if not same:
            changes += self._compare_values(old.direction, old.schema, new.schema)
            for name in sorted(self._old.untagged_members(old.schema) & self._new.untagged_members(new.schema)):
                member = {"$ref": f"#/components/schemas/{name}"}
                reported = {change.key for change in changes}
                member_changes = self._compare_values(old.direction, member, member)
                changes += [replace(change, example_of=name) for change in member_changes if change.key not in reported]
        changes += compare_structure(self._old, self._new, old, new, {change.where for change in changes})
        if not same and not changes:
            changes.append(Change("safe", old.direction, "", "written differently; the same values are accepted"))
        yield from changes


def _rejected_change(direction: str, error: Mismatch, value: Any) -> Change:
    """Describe a value that the old contract accepts and the new one rejects."""
    if direction == "request":
        reason = REQUIRED if error.what == OMITTED else f"{error.what} is rejected now"
        return Change("breaking", direction, error.where, reason, [], value)
    reason = "it is always returned now" if error.what == OMITTED else f"{error.what} is no longer returned"
    return Change("safe", direction, error.where, reason, [], value)


def _accepted_change(direction: str, error: Mismatch, value: Any) -> Change:
    """Describe a value that the new contract accepts and the old one rejects."""
    level, verb = ("safe", "is accepted now") if direction == "request" else ("breaking", "may be returned now")
    reason = "it may be omitted now" if error.what == OMITTED else f"{error.what} {verb}"
    return Change(level, direction, error.where, reason, [], value)


def _removed_part(part: SignaturePart, after: Json) -> Iterator[Change]:
    kind, _, name = part.part.partition(" ")
    if kind == "body":
        reason = f"{name} is no longer accepted" if after.get("requestBody") else "a body is no longer accepted"
        yield Change("breaking", "request", "body", reason, [part.operation])
    elif part.direction == "request":
        reason = "the parameter was removed; a server ignores or rejects it"
        yield Change("risky", "request", part.part, reason, [part.operation])
    elif kind in after["responses"]:
        level = "risky" if name.startswith("header ") else "breaking"
        yield Change(level, "response", part.part, "is no longer returned", [part.operation])


def _added_part(part: SignaturePart, before: Json) -> Iterator[Change]:
    kind, _, name = part.part.partition(" ")
    if kind == "body":
        yield Change("safe", "request", "body", f"{name} is accepted now", [part.operation])
    elif part.direction == "request":
        reason = "a new required parameter" if part.required else "a new optional parameter"
        yield Change("breaking" if part.required else "safe", "request", part.part, reason, [part.operation])
    elif kind in before["responses"]:
        others = [media for media in before["responses"][kind].get("content", {}) if not name.startswith("header ")]
        reason = (
            "may be returned now; a client that does not accept it must not receive it"
            if others
            else "a body is returned now, although the old contract has no body"
        )
        yield Change("risky" if others else "safe", "response", part.part, reason, [part.operation])


def _compare_statuses(key: str, old: Json, new: Json) -> Iterator[Change]:
    for status in sorted(old.keys() - new.keys()):
        level = "breaking" if status.startswith("2") else "safe"
        yield Change(level, "response", status, "the status is no longer returned", [key])
    for status in sorted(new.keys() - old.keys()):
        had_wildcard = "default" in old or f"{status[0]}XX" in old
        level = "risky" if status.startswith(("2", "3")) or not had_wildcard else "safe"
        yield Change(level, "response", status, "the status may be returned now", [key])
