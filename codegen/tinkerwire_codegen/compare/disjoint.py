"""Proof that no value fits two schemas of two documents."""

from __future__ import annotations

import math
from typing import Any, Protocol

from .merging import kinds_of, property_schema
from .schemas import Schemas

Json = dict[str, Any]

MAX_DEPTH = 4


class Prover(Protocol):
    """The part of the prover of subsets that this proof uses."""

    inner: Schemas
    outer: Schemas

    @property
    def reverse(self) -> Prover:
        """The prover of the other direction."""
        ...

    def proves(self, inner: Any, outer: Any) -> bool:
        """Report whether ``outer`` is shown to accept all values of ``inner``."""
        ...


def is_disjoint(prover: Prover, inner: Any, outer: Any, depth: int = 0) -> bool:
    """Report whether it is shown that no value fits both schemas."""
    is_merged = isinstance(inner, dict) and "type" in inner and "$ref" not in inner
    first = inner if is_merged else prover.inner.merge(inner)
    second = prover.outer.merge(outer)
    if first is False or second is False or depth > MAX_DEPTH:
        return first is False or second is False
    kinds = kinds_of(first) & kinds_of(second)
    if not kinds:
        return True
    if "enum" in first:
        return not any(prover.outer.is_valid(outer, value) for value in first["enum"])
    if "enum" in second:
        return not any(prover.inner.is_valid(first, value) for value in second["enum"])
    for part in first.get("allOf", []):
        if "not" in part and prover.reverse.proves(outer, part["not"]):
            return True
        for key in ("anyOf", "oneOf"):
            if key in part and all(is_disjoint(prover, member, outer, depth + 1) for member in part[key]):
                return True
    for part in second.get("allOf", []):
        if "not" in part and prover.proves(inner, part["not"]):
            return True
        for key in ("anyOf", "oneOf"):
            if key in part and all(is_disjoint(prover, first, member, depth + 1) for member in part[key]):
                return True
    return all(_is_disjoint_kind(prover, kind, first, second, depth) for kind in kinds)


def _is_disjoint_kind(prover: Prover, kind: str, first: Json, second: Json, depth: int) -> bool:
    if kind in ("integer", "fraction"):
        return _is_below(first, second) or _is_below(second, first)
    if kind != "object":
        return False
    required = {*first.get("required", []), *second.get("required", [])}
    return any(
        is_disjoint(prover, property_schema(first, name), property_schema(second, name), depth + 1) for name in required
    )


def _is_below(first: Json, second: Json) -> bool:
    return bool(first.get("maximum", math.inf) < second.get("minimum", -math.inf))
