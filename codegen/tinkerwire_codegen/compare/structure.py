"""Changes that no value shows: defaults, and properties that come or go where unknown ones are taken."""

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
    """Such changes between two schemas of the same place; ``told`` are places of which something was said already."""
    walk = _Walk(old, new, before.direction, reported)
    return list(walk.pair(before.schema, after.schema, ""))


class _Walk:
    def __init__(self, old: Schemas, new: Schemas, direction: str, reported: set[str]) -> None:
        self._old, self._new, self._direction, self._reported = old, new, direction, reported
        self._seen: set[tuple[str, str]] = set()

    def pair(self, one: Any, two: Any, where: str) -> Iterator[Change]:
        """Changes between two schemas and all that is the same in both below them."""
        if not isinstance(one, dict) or not isinstance(two, dict):
            return
        yield from self._default(one, two, where)
        names = [each["$ref"].rpartition("/")[2] if "$ref" in each else "" for each in (one, two)]
        if any(names):
            if (names[0], names[1]) in self._seen:
                return
            self._seen.add((names[0], names[1]))
            if not all(names) and (pairs := list(_members(*(_as_union(each) for each in (one, two))))):
                for left, right in pairs:
                    yield from self.pair(left, right, where)
                return
            one = self._old.components.get(names[0], {}) if names[0] else one
            two = self._new.components.get(names[1], {}) if names[1] else two
            if all(names):
                where = names[1]
                yield from self._default(one, two, where)
        yield from self._properties(one, two, where)
        for key, mark in (("items", "[]"), ("additionalProperties", "[*]")):
            yield from self.pair(one.get(key), two.get(key), where + mark)
        for index, (left, right) in enumerate(
            zip(one.get("prefixItems", []), two.get("prefixItems", []), strict=False)
        ):
            yield from self.pair(left, right, f"{where}[{index}]")
        for left, right in _members(one, two):
            yield from self.pair(left, right, where)
        if where not in self._reported:
            yield from self._one_sided_members(one, two, where)

    def _properties(self, one: Json, two: Json, where: str) -> Iterator[Change]:
        before, after = one.get("properties", {}), two.get("properties", {})
        for name in sorted(before.keys() | after.keys()):
            place = f"{where}.{name}" if where else name
            if name in before and name in after:
                yield from self.pair(before[name], after[name], place)
            elif place not in self._reported:
                yield self._one_sided(place, gone=name in before)

    def _one_sided(self, place: str, *, gone: bool) -> Change:
        if self._direction == "request":
            reason = "no longer known; it is ignored or kept aside" if gone else "a new property, which may be left out"
        else:
            reason = "no longer comes; readers see it left out" if gone else "a new property, which readers may ignore"
        return Change("risky" if gone else "safe", self._direction, place, reason)

    def _one_sided_members(self, one: Json, two: Json, where: str) -> Iterator[Change]:
        """Members of a union that came or went where another member takes the same values."""
        before, after = ({each["$ref"] for each in _union(side) if "$ref" in each} for side in (one, two))
        if not (before and after):
            return
        for gone, names in ((True, before - after), (False, after - before)):
            for name in sorted(names):
                level = "safe" if gone == (self._direction == "response") else "risky"
                verb = "is no longer a member" if gone else "is a new member"
                reason = f"{name.rpartition('/')[2]} {verb}; another member takes its values"
                yield Change(level, self._direction, where, reason)

    def _default(self, one: Json, two: Json, where: str) -> Iterator[Change]:
        old, new = one.get("default", NO_DEFAULT), two.get("default", NO_DEFAULT)
        same = old is new or (NO_DEFAULT not in (old, new) and json.dumps(old) == json.dumps(new))
        if not same and ("const" not in one or one.get("const") == two.get("const")):
            words = ["nothing" if each is NO_DEFAULT else json.dumps(each, ensure_ascii=False) for each in (old, new)]
            reason = f"left out meant {words[0]}, now means {words[1]}"
            yield Change("risky", self._direction, where, reason)


def _union(schema: Json) -> list[Any]:
    return [*schema.get("anyOf", []), *schema.get("oneOf", [])]


def _as_union(schema: Json) -> Json:
    """A reference as a union of one, to find it among the members of the other side."""
    return {"anyOf": [{"$ref": schema["$ref"]}]} if "$ref" in schema else schema


def _members(one: Json, two: Json) -> Iterator[tuple[Any, Any]]:
    """Members of two unions that belong together: those of the same name, else those at the same place."""
    for key in ("anyOf", "oneOf", "allOf"):
        left, right = one.get(key, []), two.get(key, [])
        named = {each["$ref"]: each for each in right if "$ref" in each}
        yield from ((each, named[each["$ref"]]) for each in left if each.get("$ref") in named)
        plain = [[each for each in side if "$ref" not in each] for side in (left, right)]
        yield from zip(*plain, strict=False)
