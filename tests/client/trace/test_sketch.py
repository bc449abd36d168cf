"""Sketches: percentiles within their stated error, in bounded memory."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tinkerwire._trace.sketch import PERCENTILES, RELATIVE_ERROR, SMALLEST, Distribution, Sketch

VALUES = st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=300)


@given(VALUES)
def test_percentiles_are_within_the_stated_error(values: list[float]) -> None:
    """Each is at most 1 % from the value of its rank; values below a tenth of a microsecond count as zero."""
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    ordered, found = sorted(values), sketch.distribution()
    for percent in PERCENTILES:
        exact = ordered[math.ceil(percent * len(ordered) / 100) - 1]
        value = getattr(found, f"p{percent}")
        assert abs(value - exact) <= RELATIVE_ERROR * exact * (1 + 1e-9) + SMALLEST
    assert (found.count, found.min, found.max) == (len(values), ordered[0], ordered[-1])
    assert math.isclose(found.mean, math.fsum(values) / len(values), rel_tol=1e-9, abs_tol=1e-12)


def test_memory_is_bounded() -> None:
    """Values from the smallest to beyond the largest need fewer than 2,000 buckets."""
    sketch = Sketch()
    for number in range(200_000):
        sketch.add(10 ** (number / 5_000 - 20))
    assert len(sketch._buckets) < 2_000


def test_empty_sketch_has_zeros() -> None:
    assert Sketch().distribution() == Distribution()
