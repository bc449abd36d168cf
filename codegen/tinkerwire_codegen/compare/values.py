"""Values that one contract accepts and the other rejects, and keywords for which nobody knows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .change import Change
from .examples import embed
from .explain import OMITTED, UNKNOWN, VALUE, Mismatch
from .schemas import Equality, Schemas
from .subset import Obstacle, SubsetProver

Json = dict[str, Any]

REQUIRED = "it is required now"
OPTIONAL = "it may be omitted now"
UNION_KEYWORDS = frozenset({"anyOf", "oneOf", "false", "type", "enum", "const", "$ref"})
"""Keywords of obstacles that an error of another keyword may explain."""

NAMES = {"false": "additionalProperties"}
MAX_SHOWN = 12


class ValueComparison:
    """Comparison of schemas of two documents, for one direction, by the values that they accept."""

    def __init__(self, old: Schemas, new: Schemas) -> None:
        """Initialize with the schemas of both documents."""
        self.equality = Equality(old.plain, new.plain)
        self._direction = old.direction
        self._narrowing = SubsetProver(old, new, self.equality)
        self._widening = self._narrowing.reverse

    def compare(self, old: Any, new: Any) -> list[Change]:
        """Return the changes between two plain schemas; none means that both are shown to accept the same values."""
        rejected, unclear_rejected = find_rejected_values(self._narrowing, old, new)
        accepted, unclear_accepted = find_rejected_values(self._widening, new, old)
        changes = [_rejected_change(self._direction, *rejection) for rejection in rejected]
        now_required = {change.where for change in changes if change.reason == REQUIRED}
        # A property that is now required needs no second report as new.
        changes += [
            _accepted_change(self._direction, *rejection)
            for rejection in accepted
            if not (rejection[0].what == UNKNOWN and rejection[0].where in now_required)
        ]
        is_request = self._direction == "request"
        risky, harmless = (unclear_rejected, unclear_accepted) if is_request else (unclear_accepted, unclear_rejected)
        changes += [
            Change("risky", self._direction, obstacle.where, _describe_unclear(obstacle, is_request=is_request))
            for obstacle in risky
        ]
        text = "more values may be accepted now" if is_request else "fewer values may be returned now"
        return changes + [
            Change("safe", self._direction, obstacle.where, f"{text} ({_keyword(obstacle)})")
            for obstacle in harmless
            if not any(change.where == obstacle.where for change in changes)
        ]


def find_rejected_values(
    prover: SubsetProver, inner: Any, outer: Any
) -> tuple[list[tuple[Mismatch, Any]], list[Obstacle]]:
    """Return the reasons why ``outer`` rejects values of ``inner``, each with a small value, and the unclear places."""
    rejections: dict[Mismatch, Any] = {}
    unclear: list[Obstacle] = []
    for obstacle in prover.find_obstacles(inner, outer):
        found = _try_values(prover, obstacle, inner, outer)
        for mismatch, value in found:
            known = rejections.setdefault(mismatch, value)
            if len(json.dumps(value)) < len(json.dumps(known)):
                rejections[mismatch] = value
        if not any(_explains(mismatch, obstacle) for mismatch, _ in found):
            unclear.append(obstacle)
    shown = {(mismatch.where, mismatch.keyword) for mismatch in rejections}
    unclear = [obstacle for obstacle in unclear if (obstacle.where, obstacle.keyword) not in shown]
    return list(rejections.items()), list({(o.where, o.keyword): o for o in unclear}.values())


def _try_values(prover: SubsetProver, obstacle: Obstacle, inner: Any, outer: Any) -> list[tuple[Mismatch, Any]]:
    """Return the errors of example values that the obstacle suggests, each with its smallest value."""
    examples = prover.inner.examples
    hints = examples.collect_hints(obstacle.inner, obstacle.outer)
    candidates = [embed(examples, obstacle.steps, value) for value in examples.generate(obstacle.inner, hints)]
    accepting, rejecting = prover.inner.validator(inner), prover.outer.validator(outer)
    found: dict[Mismatch, Any] = {}
    for value in sorted(candidates, key=lambda value: len(json.dumps(value))):
        if accepting.is_valid(value) and not rejecting.is_valid(value):
            mismatches = prover.outer.mismatches.find(outer, value)
            for mismatch in mismatches or [Mismatch(obstacle.where, "a value", obstacle.keyword)]:
                if not _is_repetition(mismatch, obstacle, found):
                    found.setdefault(mismatch, value)
            if len(found) >= MAX_SHOWN:
                break
    return list(found.items())


def _is_repetition(mismatch: Mismatch, obstacle: Obstacle, found: Iterable[Mismatch]) -> bool:
    """Report whether another unlisted value is found; if any value may come, the others show nothing more."""
    is_unlisted = mismatch.keyword in ("enum", "const") and mismatch.what.startswith(VALUE)
    if not is_unlisted or mismatch.where != obstacle.where or "enum" in obstacle.inner:
        return False
    return any(
        (other.where, other.keyword) == (mismatch.where, mismatch.keyword) and other.what.startswith(VALUE)
        for other in found
    )


def _explains(mismatch: Mismatch, obstacle: Obstacle) -> bool:
    return mismatch.keyword == obstacle.keyword or obstacle.keyword in UNION_KEYWORDS


def _keyword(obstacle: Obstacle) -> str:
    return NAMES.get(obstacle.keyword, obstacle.keyword)


def _describe_unclear(obstacle: Obstacle, *, is_request: bool) -> str:
    verb = "fewer values may be accepted now" if is_request else "more values may be returned now"
    return f"not understood: {_keyword(obstacle)}; {verb}"


def _rejected_change(direction: str, error: Mismatch, value: Any) -> Change:
    """Describe a value that the old contract accepts and the new one rejects."""
    if direction == "request":
        reason = REQUIRED if error.what == OMITTED else f"{error.what} is rejected now"
        return Change("breaking", direction, error.where, reason, [], value)
    if error.what == UNKNOWN:
        reason = "no longer returned; readers see it as omitted"
        return Change("risky", direction, error.where, reason, [], value)
    reason = "it is always returned now" if error.what == OMITTED else f"{error.what} is no longer returned"
    return Change("safe", direction, error.where, reason, [], value)


def _accepted_change(direction: str, error: Mismatch, value: Any) -> Change:
    """Describe a value that the new contract accepts and the old one rejects."""
    level, verb = ("safe", "is accepted now") if direction == "request" else ("breaking", "may be returned now")
    reason = OPTIONAL if error.what == OMITTED else f"{error.what} {verb}"
    return Change(level, direction, error.where, reason, [], value)
