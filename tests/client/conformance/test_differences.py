"""Tests of the differences between log probabilities."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinkerwire._conformance.checks.differences import distance, largest_difference

NUMBERS = st.floats(-100, 0)


@given(st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_distance_is_that_of_the_farthest_pair(pairs: list[tuple[float, float]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    expected = max((abs(one - other) for one, other in pairs), default=0.0)
    assert distance(first, second) == expected
    assert largest_difference([[0.0], first], [[0.0], second]) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0.5, math.nan], [0.5, -1.0]),
        ([-1.0, 0.5], [math.nan, 0.5]),
        ([math.inf], [math.inf]),
        ([0.5], [0.5, -1.0]),
        ([], [0.5]),
    ],
)
def test_values_that_cannot_be_compared_differ(first: list[float], second: list[float]) -> None:
    """NaN at any place, and another number of values, never count as equal."""
    assert distance(first, second) == math.inf
    assert largest_difference([[1.0], first], [[1.0], second]) == math.inf


def test_rows_are_compared_with_rows() -> None:
    assert largest_difference([[1.0], [2.0]], [[1.0, 2.0]]) == math.inf
    assert largest_difference([[1.0], [2.0]], [[1.5], [2.25]]) == 0.5
