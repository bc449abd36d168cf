"""Differences between log probabilities at the same places."""

from __future__ import annotations

import math
from collections.abc import Sequence


def distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the largest difference; infinity if the lengths differ, or a value is not a number."""
    if len(first) != len(second):
        return math.inf
    differences = [abs(one - other) for one, other in zip(first, second, strict=True)]
    return math.inf if any(map(math.isnan, differences)) else max(differences, default=0.0)


def largest_difference(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> float:
    """Return the largest :func:`distance` between rows; infinity if one side has more rows."""
    if len(first) != len(second):
        return math.inf
    return max((distance(one, other) for one, other in zip(first, second, strict=True)), default=0.0)
