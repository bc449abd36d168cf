"""A sketch of a distribution: percentiles of any number of values in bounded memory, with a stated error."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

RELATIVE_ERROR = 0.01
"""Maximum error of a percentile, as a share of the exact value."""
GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_SCALE = 1 / math.log(GAMMA)
SMALLEST, LARGEST = 1e-7, 1e9
"""Values outside this range count as its ends; seconds and bytes are within. It has about 1,850 buckets."""
PERCENTILES = (50, 95, 99)


@attrs.frozen(kw_only=True)
class Distribution:
    """Statistics of values; percentiles are exact to 1 %. All are 0 without values."""

    count: int = 0
    mean: float = 0.0
    min: float = 0.0
    max: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0


class Sketch:
    """Sketch with logarithmic buckets, as DDSketch (Masson, Rim and Lee, VLDB 2019).

    Bucket ``i`` holds the values in ``(GAMMA ** (i - 1), GAMMA ** i]``; any of them differs by at most 1 % from the
    value that stands for the bucket. Zero has its own bucket.
    """

    __slots__ = ("_buckets", "_max", "_min", "_sum", "_zeros", "count")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._zeros = 0
        self._sum = 0.0
        self._min, self._max = math.inf, 0.0
        self.count = 0

    def add(self, value: float) -> None:
        """Add a value of 0 or more."""
        self.count += 1
        self._sum += value
        self._max, self._min = max(self._max, value), min(self._min, value)
        if value < SMALLEST:
            self._zeros += 1
            return
        bucket = math.ceil(math.log(min(value, LARGEST)) * _SCALE)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def distribution(self) -> Distribution:
        """Return the statistics of the values so far."""
        if not self.count:
            return Distribution()
        percentiles = self._percentiles()
        return Distribution(
            count=self.count,
            mean=self._sum / self.count,
            min=self._min,
            max=self._max,
            p50=percentiles[50],
            p95=percentiles[95],
            p99=percentiles[99],
        )

    def _percentiles(self) -> Mapping[int, float]:
        """Return the value of each rank ``ceil(percent * count / 100)``."""
        ranks = {percent: math.ceil(percent * self.count / 100) for percent in PERCENTILES}
        found: dict[int, float] = {}
        seen, buckets = self._zeros, sorted(self._buckets)
        position = 0
        for percent, rank in ranks.items():
            while seen < rank and position < len(buckets):
                seen += self._buckets[buckets[position]]
                position += 1
            value = 0.0 if position == 0 else 2 * GAMMA ** buckets[position - 1] / (GAMMA + 1)
            found[percent] = min(max(value, self._min), self._max)
        return found
