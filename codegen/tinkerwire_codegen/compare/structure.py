"""Changes that no value shows: defaults, tags, and properties added or removed where unknown ones are accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .change import Change
from .dialect import strip_annotations
from .discriminators import compare_discriminators
from .schemas import Equality, Schemas, exactly_equal, list_references
from .signatures import SignaturePart

Json = dict[str, Any]

NO_DEFAULT: Any = object()
MAX_DEPTH = 10
STRUCTURAL = frozenset(
    {"anyOf", "oneOf", "allOf", "$ref", "properties", "items", "prefixItems", "additionalProperties"}
)


class StructureComparison:
    """Comparison of the annotations of schemas of two documents, for one direction."""

    def __init__(self, old: Schemas, new: Schemas) -> None:
        """Initialize with the schemas of both documents."""
        self._old, self._new = old, new
        self._equality = Equality(old.components, new.components)
        self._plain_equality = Equality(old.plain, new.plain)

    def is_unchanged(self, old: Any, new: Any) -> bool:
        """Report whether two schemas are written exactly the same, annotations included."""
        return exactly_equal(old, new) and all(name in self._equality.unchanged for name in list_references(old))

    def compare(self, before: SignaturePart, after: SignaturePart, reported: set[str]) -> list[Change]:
        """Find such changes between two schemas of one place; ``reported`` are places that already have a change."""
        walk = _Walk(self._old, self._new, self._equality.unchanged, self._plain_equality, reported)
        return list(walk.compare(before.schema, after.schema, ""))


class _Walk:
    def __init__(
        self, old: Schemas, new: Schemas, unchanged: frozenset[str], equality: Equality, reported: set[str]
    ) -> None:
        self._old, self._new, self._direction, self._reported = old, new, old.direction, reported
        self._unchanged, self._equality = unchanged, equality
        self._seen: set[tuple[str, str]] = set()

    def compare(self, old: Any, new: Any, where: str) -> Iterator[Change]:
        """Yield the changes between two schemas, and between all parts that they share."""
        if not isinstance(old, dict) or not isinstance(new, dict):
            return
        old, new = _unwrap(old), _unwrap(new)
        yield from self._annotations(old, new, where)
        names = [schema["$ref"].rpartition("/")[2] if "$ref" in schema else "" for schema in (old, new)]
        if any(names):
            if (names[0], names[1]) in self._seen or (names[0] == names[1] and names[0] in self._unchanged):
                return
            self._seen.add((names[0], names[1]))
            if not all(names) and (pairs := list(self._members(*(_as_union(schema) for schema in (old, new))))):
                for old_value, new_value in pairs:
                    yield from self.compare(old_value, new_value, where)
                return
            old = self._old.components.get(names[0], {}) if names[0] else old
            new = self._new.components.get(names[1], {}) if names[1] else new
            if not isinstance(old, dict) or not isinstance(new, dict):
                return
            if all(names):
                where = names[1]
                yield from self._annotations(old, new, where)
        if bool(_union(old)) is not bool(_union(new)) and not any(map(_has_rules_beside_union, (old, new))):
            sides = [{"anyOf": _union(schema) or [_without_annotations(schema)]} for schema in (old, new)]
            for old_value, new_value in self._members(sides[0], sides[1]):
                yield from self.compare(old_value, new_value, where)
            return
        if len(old.get("allOf", [])) != len(new.get("allOf", [])):
            old, new = _flatten(self._old, old), _flatten(self._new, new)
        yield from compare_discriminators(self._old, self._new, self._equality, old, new, where, self._reported)
        yield from self._properties(old, new, where)
        for key, mark in (("items", "[]"), ("additionalProperties", "[*]")):
            yield from self.compare(old.get(key), new.get(key), where + mark)
        for index, (old_value, new_value) in enumerate(
            zip(old.get("prefixItems", []), new.get("prefixItems", []), strict=False)
        ):
            yield from self.compare(old_value, new_value, f"{where}[{index}]")
        for old_value, new_value in self._members(old, new):
            yield from self.compare(old_value, new_value, where)
        # Tags are compared already, and each member has one.
        if where not in self._reported and not ("discriminator" in old and "discriminator" in new):
            yield from self._one_sided_members(old, new, where)

    def _properties(self, old: Json, new: Json, where: str) -> Iterator[Change]:
        before, after = old.get("properties", {}), new.get("properties", {})
        names_of_old, names_of_new = self._old.declared_names(old), self._new.declared_names(new)
        for name in sorted(before.keys() | after.keys()):
            place = f"{where}.{name}" if where else name
            if name in before and name in after:
                yield from self.compare(before[name], after[name], place)
            elif place not in self._reported and name not in (names_of_new if name in before else names_of_old):
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

    def _members(self, old: Json, new: Json) -> Iterator[tuple[Any, Any]]:
        """Yield pairs of corresponding members: those of one name, those that are equal, those at one place."""
        for key in ("anyOf", "oneOf", "allOf"):
            sides = [[member for member in side.get(key, []) if isinstance(member, dict)] for side in (old, new)]
            rest = list(sides[1])
            left = []
            for member in sides[0]:
                target = member.get("$ref")
                match = next((other for other in rest if target is not None and other.get("$ref") == target), None)
                if match is None:
                    left.append(member)
                else:
                    rest = [other for other in rest if other is not match]
                    yield member, match
            for member in left:
                match = next((other for other in rest if self._is_equal(member, other)), None)
                match = match or next(
                    (other for other in rest if ("$ref" in member) is ("$ref" in other) is False), None
                )
                if match is not None:
                    rest = [other for other in rest if other is not match]
                    yield member, match

    def _is_equal(self, old: Json, new: Json) -> bool:
        return self._equality.is_equal(strip_annotations(old), strip_annotations(new))

    def _one_sided_members(self, old: Json, new: Json, where: str) -> Iterator[Change]:
        """Yield members of a union that were added or removed while another member accepts the same values."""
        sides = [[member["$ref"] for member in _union(side) if "$ref" in member] for side in (old, new)]
        if not (sides[0] and sides[1]):
            return
        for index, removed in ((0, True), (1, False)):
            others = sides[1 - index]
            for name in sorted(set(sides[index]) - set(others)):
                pairs = [({"$ref": name}, {"$ref": o}) if removed else ({"$ref": o}, {"$ref": name}) for o in others]
                if any(self._is_equal(*pair) for pair in pairs):
                    continue
                level = "safe" if removed == (self._direction == "response") else "risky"
                verb = "is no longer a member" if removed else "is a new member"
                reason = f"{name.rpartition('/')[2]} {verb}; another member accepts its values"
                yield Change(level, self._direction, where, reason)

    def _annotations(self, old: Json, new: Json, where: str) -> Iterator[Change]:
        yield from self._default(old, new, where)
        if new.get("deprecated") is True and old.get("deprecated") is not True and "$ref" not in old:
            yield Change("safe", self._direction, where, "it is deprecated now")
        if old.get("xml") != new.get("xml") and "$ref" not in old:
            yield Change(
                "risky", self._direction, where, "not understood: xml; the form in XML documents may be another"
            )

    def _default(self, old: Json, new: Json, where: str) -> Iterator[Change]:
        old_default, new_default = old.get("default", NO_DEFAULT), new.get("default", NO_DEFAULT)
        is_same = old_default is new_default or (
            NO_DEFAULT not in (old_default, new_default)
            and json.dumps(old_default, sort_keys=True) == json.dumps(new_default, sort_keys=True)
        )
        if not is_same and ("const" not in old or old.get("const") == new.get("const")):
            texts = [
                "nothing" if value is NO_DEFAULT else json.dumps(value, ensure_ascii=False)
                for value in (old_default, new_default)
            ]
            reason = f"omitting it meant {texts[0]}, now means {texts[1]}"
            yield Change("risky", self._direction, where, reason)


def _unwrap(schema: Json) -> Json:
    """Return a schema without a union or composition that has one member beside null."""
    for key in ("anyOf", "oneOf", "allOf"):
        members = [member for member in schema.get(key, []) if member != {"type": "null"}]
        is_alone = len(members) == 1 and isinstance(members[0], dict) and not schema.keys() & STRUCTURAL - {key}
        if is_alone:
            return _unwrap({**{name: item for name, item in schema.items() if name != key}, **members[0]})
    return schema


def _flatten(schemas: Schemas, schema: Json, depth: int = 0) -> Json:
    """Return a schema with the properties and annotations of all that its allOf has."""
    flat = {key: item for key, item in schema.items() if key != "allOf"}
    for part in schema.get("allOf", []) if depth < MAX_DEPTH else []:
        target = schemas.components.get(part["$ref"].rpartition("/")[2], {}) if "$ref" in part else part
        inner = _flatten(schemas, target, depth + 1) if isinstance(target, dict) else {}
        flat = {**inner, **flat, "properties": {**inner.get("properties", {}), **flat.get("properties", {})}}
    return flat


def _has_rules_beside_union(schema: Json) -> bool:
    return bool(_union(schema)) and bool(schema.keys() & STRUCTURAL - {"anyOf", "oneOf"})


def _union(schema: Json) -> list[Json]:
    members = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    return [member for member in members if isinstance(member, dict)]


def _without_annotations(schema: Json) -> Json:
    return {key: item for key, item in schema.items() if key not in ("default", "deprecated", "xml")}


def _as_union(schema: Json) -> Json:
    """Wrap a reference as a union of one, to find it among the members of the other schema."""
    return {"anyOf": [{"$ref": schema["$ref"]}]} if "$ref" in schema else schema
