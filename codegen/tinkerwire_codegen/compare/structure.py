"""Changes that no value shows: defaults, and properties added or removed where unknown ones are accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .change import Change
from .schemas import Schemas
from .signatures import SignaturePart

Json = dict[str, Any]

NO_DEFAULT: Any = object()


def compare_structure(
    old: Schemas, new: Schemas, before: SignaturePart, after: SignaturePart, reported: set[str]
) -> list[Change]:
    """Find such changes between two schemas of one place; ``reported`` are places that already have a change."""
    walk = _Walk(old, new, before.direction, reported)
    return list(walk.compare(before.schema, after.schema, ""))


class _Walk:
    def __init__(self, old: Schemas, new: Schemas, direction: str, reported: set[str]) -> None:
        self._old, self._new, self._direction, self._reported = old, new, direction, reported
        self._seen: set[tuple[str, str]] = set()

    def compare(self, old: Any, new: Any, where: str) -> Iterator[Change]:
        """Yield the changes between two schemas, and between all parts that they share."""
        if not isinstance(old, dict) or not isinstance(new, dict):
            return
        yield from self._default(old, new, where)
        names = [schema["$ref"].rpartition("/")[2] if "$ref" in schema else "" for schema in (old, new)]
        if any(names):
            if (names[0], names[1]) in self._seen:
                return
            self._seen.add((names[0], names[1]))
            if not all(names) and (pairs := list(_members(*(_as_union(schema) for schema in (old, new))))):
                for old_value, new_value in pairs:
                    yield from self.compare(old_value, new_value, where)
                return
            old = self._old.components.get(names[0], {}) if names[0] else old
            new = self._new.components.get(names[1], {}) if names[1] else new
            if all(names):
                where = names[1]
                yield from self._default(old, new, where)
        yield from self._properties(old, new, where)
        for key, mark in (("items", "[]"), ("additionalProperties", "[*]")):
            yield from self.compare(old.get(key), new.get(key), where + mark)
        for index, (old_value, new_value) in enumerate(
            zip(old.get("prefixItems", []), new.get("prefixItems", []), strict=False)
        ):
            yield from self.compare(old_value, new_value, f"{where}[{index}]")
        for old_value, new_value in _members(old, new):
            yield from self.compare(old_value, new_value, where)
        if where not in self._reported:
            yield from self._one_sided_members(old, new, where)

    def _properties(self, old: Json, new: Json, where: str) -> Iterator[Change]:
        before, after = old.get("properties", {}), new.get("properties", {})
        for name in sorted(before.keys() | after.keys()):
            place = f"{where}.{name}" if where else name
            if name in before and name in after:
                yield from self.compare(before[name], after[name], place)
            elif place not in self._reported:
                yield self._one_sided(place, removed=name in before)

    def _one_sided(self, place: str, *, removed: bool) -> Change:
        if self._direction == "request":
            reason = (
                "no longer known; a server ignores it or keeps it as extra data"
                if removed
                else "a new optional property"
            )
        else:
            reason = (
                "no longer returned; readers see it as omitted"
                if removed
                else "a new property, which readers may ignore"
            )
        return Change("risky" if removed else "safe", self._direction, place, reason)

    def _one_sided_members(self, old: Json, new: Json, where: str) -> Iterator[Change]:
        """Yield members of a union that were added or removed while another member accepts the same values."""
        before, after = ({member["$ref"] for member in _union(side) if "$ref" in member} for side in (old, new))
        if not (before and after):
            return
        for removed, names in ((True, before - after), (False, after - before)):
            for name in sorted(names):
                level = "safe" if removed == (self._direction == "response") else "risky"
                verb = "is no longer a member" if removed else "is a new member"
                reason = f"{name.rpartition('/')[2]} {verb}; another member accepts its values"
                yield Change(level, self._direction, where, reason)

    def _default(self, old: Json, new: Json, where: str) -> Iterator[Change]:
        old_default, new_default = old.get("default", NO_DEFAULT), new.get("default", NO_DEFAULT)
        is_same = old_default is new_default or (
            NO_DEFAULT not in (old_default, new_default) and json.dumps(old_default) == json.dumps(new_default)
        )
        if not is_same and ("const" not in old or old.get("const") == new.get("const")):
            texts = [
                "nothing" if value is NO_DEFAULT else json.dumps(value, ensure_ascii=False)
                for value in (old_default, new_default)
            ]
            reason = f"omitting it meant {texts[0]}, now means {texts[1]}"
            yield Change("risky", self._direction, where, reason)


def _union(schema: Json) -> list[Any]:
    return [*schema.get("anyOf", []), *schema.get("oneOf", [])]


def _as_union(schema: Json) -> Json:
    """Wrap a reference as a union of one, to find it among the members of the other schema."""
    return {"anyOf": [{"$ref": schema["$ref"]}]} if "$ref" in schema else schema


def _members(old: Json, new: Json) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of corresponding union members: those of the same name, otherwise those at the same place."""
    for key in ("anyOf", "oneOf", "allOf"):
        old_members, new_members = old.get(key, []), new.get(key, [])
        named_members = {member["$ref"]: member for member in new_members if "$ref" in member}
        yield from (
            (member, named_members[member["$ref"]]) for member in old_members if member.get("$ref") in named_members
        )
        unnamed = [[member for member in side if "$ref" not in member] for side in (old_members, new_members)]
        yield from zip(*unnamed, strict=False)
