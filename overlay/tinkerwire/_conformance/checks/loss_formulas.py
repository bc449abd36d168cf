"""The loss functions of the wire, as sums over tokens.

Notation: p are the log probabilities (nats) of the target tokens under the model, q those at sampling time, and a the
advantages; r = exp(p - q).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

DEFAULT_CLIP_LOW = 0.8
DEFAULT_CLIP_HIGH = 1.2


def cross_entropy(p: Sequence[float], weights: Sequence[float]) -> float:
    """Return minus the sum of weights times log probabilities."""
    return -sum(weight * logprob for weight, logprob in zip(weights, p, strict=True))


def importance_sampling(p: Sequence[float], q: Sequence[float], a: Sequence[float]) -> float:
    """Return minus the sum of ratios times advantages."""
    return -sum(_ratio(logprob, old) * advantage for logprob, old, advantage in zip(p, q, a, strict=True))


def ppo(
    p: Sequence[float],
    q: Sequence[float],
    a: Sequence[float],
    low: float = DEFAULT_CLIP_LOW,
    high: float = DEFAULT_CLIP_HIGH,
) -> float:
    """Return minus the sum of the smaller of the product with the ratio and that with the clipped ratio."""
    total = 0.0
    for logprob, old, advantage in zip(p, q, a, strict=True):
        ratio = _ratio(logprob, old)
        total += min(ratio * advantage, _clip(ratio, low, high) * advantage)
    return -total


def cispo(
    p: Sequence[float],
    q: Sequence[float],
    a: Sequence[float],
    low: float = DEFAULT_CLIP_LOW,
    high: float = DEFAULT_CLIP_HIGH,
) -> float:
    """Return minus the sum of clipped ratios, which have no gradient, times advantages times log probabilities."""
    return -sum(
        _clip(_ratio(logprob, old), low, high) * advantage * logprob
        for logprob, old, advantage in zip(p, q, a, strict=True)
    )


def dro(p: Sequence[float], q: Sequence[float], a: Sequence[float], beta: float) -> float:
    """Return minus the sum of log probabilities times advantages, with a penalty of squared differences."""
    return -sum(
        logprob * advantage - 0.5 * beta * (logprob - old) ** 2 for logprob, old, advantage in zip(p, q, a, strict=True)
    )


def _ratio(logprob: float, old: float) -> float:
    return math.exp(logprob - old)


def _clip(ratio: float, low: float, high: float) -> float:
    return min(max(ratio, low), high)
