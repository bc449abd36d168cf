"""Chi-square test: whether counts fit probabilities, with a stated rate of errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

ERROR_RATE = 1e-6
"""Probability with which a test rejects counts that come from the probabilities."""
MIN_EXPECTED = 20.0
"""Smallest expected count of a cell: with less, the statistic has no chi-square distribution."""


def fit_probability(counts: Mapping[int, int], weights: Mapping[int, float]) -> float:
    """Return the probability with which counts fit weights as badly as these do; 1.0 if there are too few.

    Args:
        counts: how often each token came; tokens without a weight do not count.
        weights: expected share of each token, up to a factor.
    """
    total = sum(counts.get(token, 0) for token in weights)
    cells = _cells(weights, total)
    if len(cells) < 3:
        return 1.0
    scale = total / sum(weights.values())
    statistic = 0.0
    for cell in cells:
        expected = scale * sum(weights[token] for token in cell)
        statistic += (sum(counts.get(token, 0) for token in cell) - expected) ** 2 / expected
    return upper_tail(statistic, len(cells) - 1)


def upper_tail(statistic: float, degrees: int) -> float:
    """Return the probability that a chi-square variable exceeds a statistic.

    For an even number of degrees of freedom it is that of a Poisson variable with mean ``statistic / 2`` to be less
    than ``degrees / 2``.

    Raises:
        ValueError: the number of degrees is not even, or not positive.
    """
    if degrees < 2 or degrees % 2:
        raise ValueError(f"the number of degrees of freedom must be even and positive, got {degrees}")
    if statistic <= 0.0:
        return 1.0
    half = statistic / 2
    terms = (math.exp(index * math.log(half) - half - math.lgamma(index + 1)) for index in range(degrees // 2))
    return min(1.0, math.fsum(terms))


def _cells(weights: Mapping[int, float], total: int) -> list[Sequence[int]]:
    """Return groups of tokens, whose number is not even, each with an expected count of MIN_EXPECTED or more."""
    scale = total / (sum(weights.values()) or 1.0)
    cells: list[list[int]] = []
    cell: list[int] = []
    for token in sorted(weights, key=lambda token: -weights[token]):
        cell.append(token)
        if scale * sum(weights[other] for other in cell) >= MIN_EXPECTED:
            cells.append(cell)
            cell = []
    if cells:
        cells[-1] += cell
    if len(cells) % 2 == 0 and len(cells) > 1:
        last = cells.pop()
        cells[-1] += last
    return [tuple(cell) for cell in cells]
