"""Proof that one schema accepts every value of another, or the places where the proof fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .disjoint import is_disjoint
from .merging import (
    UNEVALUATED,
    both,
    item_schema,
    kinds_of,
    list_conjuncts,
    longest_array,
    matches,
    property_schema,
    type_names,
)
from .patterns import list_texts
from .schemas import Equality, Schemas
from .subset_rules import CONTENT_RULES, Failure

Json = dict[str, Any]

MAX_DEPTH = 48
MAX_BRANCHES = 200
FINITE: dict[str, list[Any]] = {"null": [None], "boolean": [False, True]}


@dataclass(frozen=True)
class Obstacle:
    """A place where the proof fails: the keyword, both schemas there, and the way from the outermost schema to it."""

    where: str
    keyword: str
    steps: tuple[tuple[Json, str | int], ...]
    inner: Json
    outer: Any


class _FoundError(Exception):
    """The first obstacle of a proof that is only tried."""


@dataclass(frozen=True)
class Place:
    """A place during a proof."""

    where: str = ""
    steps: tuple[tuple[Json, str | int], ...] = ()

    def enter(self, schema: Json, key: str | int, where: str) -> Place:
        """Return the place of a property or an item."""
        return Place(where, (*self.steps, (schema, key)))


class SubsetProver:
    """Prover that schemas of one document accept at least the values that schemas of another accept.

    A proof without obstacles holds for all values, but for objects with properties that the inner schema leaves open:
    only names that the outer schema does not declare count for those.
    """

    def __init__(self, inner: Schemas, outer: Schemas, equality: Equality | None = None) -> None:
        """Initialize with the schemas of both sides."""
        self.inner, self.outer = inner, outer
        self.equality = equality or Equality(inner.plain, outer.plain)
        self._reverse: SubsetProver | None = None
        self._known: dict[str, tuple[Obstacle, ...]] = {}
        self._open: dict[str, int] = {}
        self._lowest = MAX_DEPTH
        self._trials = 0
        self._found: list[Obstacle] = []

    def find_obstacles(self, inner: Any, outer: Any, where: str = "") -> list[Obstacle]:
        """Return the places where ``outer`` may reject values that ``inner`` accepts; none if it accepts them all."""
        self._found = []
        self.check(inner, outer, Place(where))
        unique = {(found.where, found.keyword, json.dumps(found.inner, sort_keys=True)): found for found in self._found}
        return list(unique.values())

    def proves(self, inner: Any, outer: Any) -> bool:
        """Report whether it is shown that ``outer`` accepts all values of ``inner``."""
        key = "?" + json.dumps([inner, outer], sort_keys=True)
        if key in self._known:
            return not self._known[key]
        found, self._found, self._trials = self._found, [], self._trials + 1
        lowest, self._lowest = self._lowest, MAX_DEPTH
        opened = dict(self._open)
        try:
            self.check(inner, outer, Place())
            is_proven = True
        except _FoundError:
            is_proven, self._open = False, opened
        finally:
            self._found, self._trials = found, self._trials - 1
            rests_on_assumption = self._lowest < len(self._open)
            self._lowest = min(lowest, self._lowest)
        if not rests_on_assumption:
            self._known[key] = () if is_proven else (Obstacle("", "", (), {}, True),)
        return is_proven

    @property
    def reverse(self) -> SubsetProver:
        """The prover of the other direction."""
        if self._reverse is None:
            self._reverse = SubsetProver(self.outer, self.inner, Equality(self.outer.plain, self.inner.plain))
            self._reverse._reverse = self
        return self._reverse

    def accepts(self, outer: Any, value: Any) -> bool:
        """Report whether an outer schema accepts a value."""
        return self.outer.is_valid(outer, value)

    def report(self, keyword: str, inner: Json, outer: Any, place: Place) -> None:
        """Record an obstacle."""
        self._found.append(Obstacle(place.where, keyword, place.steps, inner, outer))
        if self._trials:
            raise _FoundError

    def check(self, inner: Any, outer: Any, place: Place) -> None:
        """Record all obstacles between two schemas."""
        if outer is True or outer == {} or inner is False or self.equality.is_equal(inner, outer):
            return
        key = json.dumps([inner, outer, bool(self._trials)], sort_keys=True)
        if key in self._open:
            self._lowest = min(self._lowest, self._open[key])
            return
        if len(self._open) >= MAX_DEPTH:
            self.report("$ref", self.inner.merge(inner) or {}, outer, place)
            return
        self._open[key] = len(self._open)
        try:
            self._check_parts(inner, outer, place)
        finally:
            self._open.pop(key, None)

    def _check_parts(self, inner: Any, outer: Any, place: Place) -> None:
        merged = self.inner.merge(inner)
        if merged is False:
            return
        if outer is False:
            self.report("false", merged, outer, place)
            return
        originals = list_conjuncts(inner, self.inner.resolve)
        pending = []
        for conjunct, where in self._outer_conjuncts(outer, place.where):
            if not any(self.equality.is_equal(original, conjunct) for original in originals):
                pending.append((conjunct, Place(where, place.steps)))
        if pending:
            self.check_conjuncts(merged, pending)

    def check_conjuncts(self, inner: Json, pending: list[tuple[Any, Place]]) -> None:
        """Record the obstacles between a merged schema and several schemas that all apply."""
        if "enum" in inner:
            for value in inner["enum"]:
                if self.inner.is_valid(inner, value):
                    for conjunct, place in pending:
                        if not self.outer.is_valid(conjunct, value):
                            keyword = next((key for key in ("enum", "const") if key in conjunct), "enum")
                            self.report(keyword, {**inner, "enum": [value]}, conjunct, place)
            return
        branches = self._branches(inner)
        if branches is not None:
            for branch in branches:
                if branch is not False:
                    self.check_conjuncts(branch, pending)
            return
        for conjunct, place in pending:
            self._check_conjunct(inner, conjunct, place)

    def _branches(self, inner: Json) -> list[Any] | None:
        """Split a merged schema at its first union into one schema for each member."""
        parts = inner.get("allOf", [])
        depth = inner.get("x-split", 0)
        for part in parts:
            key = next((key for key in ("anyOf", "oneOf") if key in part), "")
            if not key or depth > 3 or len(part[key]) > MAX_BRANCHES:
                continue
            rest = {**inner, "allOf": [other for other in parts if other is not part]}
            rest.pop("x-split", None)
            members = part[key]
            branches = []
            for index, member in enumerate(members):
                others = [{"not": other} for i, other in enumerate(members) if i != index] if key == "oneOf" else []
                branch = self.inner.merge(both(rest, member, *others))
                branches.append(branch if branch is False else {**branch, "x-split": depth + 1})
            return branches
        return None

    def _outer_conjuncts(self, outer: Any, where: str) -> Iterator[tuple[Any, str]]:
        """Yield the schemas that all apply, with the place that a reader looks for."""
        if isinstance(outer, dict) and "$ref" in outer:
            name = outer["$ref"].rpartition("/")[2]
            target = self.outer.plain.get(name, True)
            inside = name if not where or has_own_place(target) else where
            yield from self._outer_conjuncts(target, inside) if target != outer else ((outer, where),)
            outer = {key: item for key, item in outer.items() if key != "$ref"}
        if isinstance(outer, dict) and "allOf" in outer and not any(key in outer for key in UNEVALUATED):
            for part in outer["allOf"]:
                yield from self._outer_conjuncts(part, where)
            outer = {key: item for key, item in outer.items() if key != "allOf"}
        if isinstance(outer, dict) and any(key in outer for key in UNEVALUATED):
            for conjunct in list_conjuncts(outer, self.outer.resolve):
                yield conjunct, where
        elif outer not in (True, {}):
            yield outer, where

    def _check_conjunct(self, inner: Json, outer: Any, place: Place) -> None:
        if outer is False:
            self.report("false", inner, outer, place)
            return
        if any(key in outer for key in UNEVALUATED):
            # The keyword depends on the whole schema, and equal schemas do not come here.
            if not any(self.equality.is_equal(part, outer) for part in inner.get("allOf", [])):
                self.report(next(key for key in UNEVALUATED if key in outer), inner, outer, place)
            return
        if kinds_of(inner) <= FINITE.keys() and "enum" not in inner:
            values = [value for kind in sorted(kinds_of(inner)) for value in FINITE[kind]]
            self.check_conjuncts({**inner, "enum": values}, [(outer, place)])
            return
        if "const" in outer or "enum" in outer:
            self.report("enum" if "enum" in outer else "const", inner, outer, place)
            return
        kinds, allowed = kinds_of(inner), kinds_of(outer)
        if not kinds <= allowed:
            self.report("type", {**inner, "type": type_names(kinds - allowed)}, outer, place)
            kinds &= allowed
        if not kinds:
            return
        inner = {**inner, "type": type_names(kinds)}
        for failure in self._content_failures(inner, outer, kinds):
            self.report(failure.keyword, inner, outer, Place(_join(place.where, failure.name), place.steps))
        if "object" in kinds:
            self._check_properties({**inner, "type": ["object"]}, outer, place)
        if "array" in kinds:
            self._check_items({**inner, "type": ["array"]}, outer, place)
        for keyword in ("anyOf", "oneOf"):
            if keyword in outer:
                self._check_union(inner, outer[keyword], keyword, place)
        if "not" in outer and not is_disjoint(self, inner, outer["not"]):
            self.report("not", inner, outer, place)
        if "if" in outer and not self._follows_condition(inner, outer):
            self.report("if", inner, outer, place)

    def _content_failures(self, inner: Json, outer: Json, kinds: frozenset[str]) -> Iterator[Failure]:
        for keyword in outer:
            rule = CONTENT_RULES.get(keyword)
            if rule is None:
                continue
            if rule.kinds is None or kinds & rule.kinds:
                yield from rule.check(self, inner, outer)
        for keyword in outer.keys() - CONTENT_RULES.keys():
            if {keyword: outer[keyword]} not in inner.get("allOf", []):
                yield Failure(keyword)

    def _check_properties(self, inner: Json, outer: Json, place: Place) -> None:
        """Compare the properties that an object of the inner schema may have with those of the outer one."""
        if not outer.keys() & {"properties", "patternProperties", "additionalProperties"}:
            return
        rest = inner.get("additionalProperties", True)
        is_open = rest is True or rest == {}
        inner_patterns = inner.get("patternProperties", {})
        outer_patterns = outer.get("patternProperties", {})
        known = self.inner.declared_names(inner)
        for name in sorted(known | outer.get("properties", {}).keys()):
            if name not in known and is_open and not any(matches(pattern, name) for pattern in inner_patterns):
                continue  # clients do not send names that only the other contract declares
            schema = property_schema(inner, name)
            self.check(schema, property_schema(outer, name), place.enter(inner, name, _join(place.where, name)))
        for pattern, schema in inner_patterns.items():
            targets = [outer_patterns[pattern]] if pattern in outer_patterns else []
            targets += [item for other, item in outer_patterns.items() if other != pattern]
            if pattern not in outer_patterns:
                targets.append(outer.get("additionalProperties", True))
            for target in targets:
                key = _example_name(pattern)
                self.check(schema, target, place.enter(inner, key, f"{place.where}[*]"))
        if rest is not False:
            key = "property_to_come"
            target = outer.get("additionalProperties", True)
            self.check(rest, target, place.enter(inner, key, place.where if target is False else f"{place.where}[*]"))
            for pattern, target in outer_patterns.items():
                if pattern not in inner_patterns and not is_open:
                    key = _example_name(pattern)
                    self.check(rest, target, place.enter(inner, key, f"{place.where}[*]"))

    def _check_items(self, inner: Json, outer: Json, place: Place) -> None:
        if not outer.keys() & {"prefixItems", "items"}:
            return
        size = max(len(inner.get("prefixItems", [])), len(outer.get("prefixItems", [])))
        longest = longest_array(inner)
        for index in range(size if longest > size else int(longest)):
            where = f"{place.where}[{index}]" if index < len(outer.get("prefixItems", [])) else f"{place.where}[]"
            self.check(item_schema(inner, index), item_schema(outer, index), place.enter(inner, index, where))
        if longest > size:
            where = place.where if outer.get("items") is False else f"{place.where}[]"
            self.check(inner.get("items", True), outer.get("items", True), place.enter(inner, size, where))

    def _check_union(self, inner: Json, members: list[Any], keyword: str, place: Place) -> None:
        accepting = [index for index, member in enumerate(members) if self.proves(inner, member)]
        for index in accepting:
            others = [other for i, other in enumerate(members) if i != index]
            if keyword == "anyOf" or all(is_disjoint(self, inner, other) for other in others):
                return
        pieces = _split_kinds(inner)
        if len(pieces) > 1:
            for piece in pieces:
                self._check_union(piece, members, keyword, place)
            return
        counterpart = None if accepting else self._find_counterpart(inner, members)
        if counterpart is None:
            self.report(keyword, inner, {keyword: members}, place)
        else:
            before = len(self._found)
            self.check(inner, counterpart, place)
            others = [other for other in members if other is not counterpart]
            is_exclusive = keyword == "anyOf" or all(is_disjoint(self, inner, other) for other in others)
            if not is_exclusive or len(self._found) == before:
                self.report(keyword, inner, {keyword: members}, place)

    def _find_counterpart(self, inner: Json, members: list[Any]) -> Any:
        """Return the member that corresponds to a schema best, or None."""
        best, best_score = None, 0.0
        for member in self._expand(members, 0):
            merged = self.outer.merge(member)
            if merged is False or not kinds_of(merged) & kinds_of(inner):
                continue
            names = [set(side.get("properties", {})) for side in (inner, merged)]
            if any(self._has_other_tag(inner, merged, name) for name in names[0] & names[1]):
                continue
            shared = len(names[0] & names[1]) / (len(names[0] | names[1]) or 1)
            score = shared if names[0] or names[1] else 0.5
            if score > best_score:
                best, best_score = member, score
        return best

    def _expand(self, members: list[Any], depth: int) -> Iterator[Any]:
        """Yield the members of a union, and instead of those that are unions, their members."""
        for member in members:
            merged = self.outer.merge(member)
            parts = merged.get("allOf", []) if isinstance(merged, dict) and "properties" not in merged else []
            inside = next((part[key] for part in parts for key in ("anyOf", "oneOf") if key in part), None)
            if inside is None or depth > 3:
                yield member
            else:
                yield from self._expand(inside, depth + 1)

    def _has_other_tag(self, inner: Json, outer: Json, name: str) -> bool:
        tags = self.inner.merge(inner["properties"][name]), self.outer.merge(outer["properties"][name])
        values = [tag.get("enum") if isinstance(tag, dict) else None for tag in tags]
        return values[0] is not None and values[1] is not None and not any(tag in values[1] for tag in values[0])

    def _follows_condition(self, inner: Json, outer: Json) -> bool:
        group = {key: outer[key] for key in ("if", "then", "else") if key in outer}
        for part in inner.get("allOf", []):
            if "if" not in part or not self.equality.is_equal(part["if"], group["if"]):
                continue
            if all(self.proves(both(inner, part.get(key, True)), group.get(key, True)) for key in ("then", "else")):
                return True
        then, otherwise = outer.get("then", True), outer.get("else", True)
        then_holds, else_holds = self.proves(inner, then), self.proves(inner, otherwise)
        return (
            (then_holds and else_holds)
            or (else_holds and is_disjoint(self, inner, outer["if"]))
            or (then_holds and self.proves(inner, outer["if"]))
        )


def has_own_place(schema: Any) -> bool:
    """Report whether an error names the component instead of the property that has it as type."""
    return isinstance(schema, dict) and any(key in schema for key in ("properties", "anyOf", "oneOf", "enum"))


def _split_kinds(schema: Json) -> list[Json]:
    kinds = type_names(kinds_of(schema))
    return [{**schema, "type": [kind]} for kind in kinds] if len(kinds) > 1 else [schema]


def _example_name(pattern: str) -> str:
    return next(iter(list_texts([pattern], None, 1)), "property_to_come")


def _join(where: str, name: str) -> str:
    return where if not name else f"{where}.{name}" if where else name
