"""Tests of the chi-square test: its tail, and its rate of errors."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tinkerwire._conformance.checks.chi_square import ERROR_RATE, fit_probability, upper_tail


@pytest.mark.parametrize(
    ("statistic", "degrees", "probability"),
    [(18.307, 10, 0.05), (13.8155, 2, 1e-3), (37.697, 14, 5.8e-4), (0.0, 4, 1.0), (1e7, 1000, 0.0)],
)
def test_tail_is_that_of_tables(statistic: float, degrees: int, probability: float) -> None:
    assert upper_tail(statistic, degrees) == pytest.approx(probability, rel=0.01)


@pytest.mark.parametrize("degrees", [0, 3, -2])
def test_tail_needs_even_degrees(degrees: int) -> None:
    with pytest.raises(ValueError, match="even"):
        upper_tail(1.0, degrees)


@pytest.mark.parametrize("weights", [np.full(256, 1.0), 1 / np.arange(1.0, 200), 0.5 ** np.arange(12)])
def test_fit_of_true_counts_is_uniform(weights: np.ndarray) -> None:
    generator = np.random.default_rng(3)
    named = dict(enumerate(weights.tolist()))
    fits = [
        fit_probability(dict(enumerate(counts.tolist())), named)
        for counts in generator.multinomial(1024, weights / weights.sum(), size=2000)
    ]
    assert np.mean(np.array(fits) < 0.1) == pytest.approx(0.1, abs=0.03)
    assert min(fits) > ERROR_RATE


def test_other_distribution_does_not_fit() -> None:
    generator = np.random.default_rng(3)
    weights = 1 / np.arange(1.0, 200)
    sharpened = weights**1.2
    tokens = generator.choice(len(weights), 1024, p=sharpened / sharpened.sum())
    assert fit_probability(Counter(tokens.tolist()), dict(enumerate(weights.tolist()))) < ERROR_RATE


def test_few_counts_prove_nothing() -> None:
    assert fit_probability({0: 30}, {0: 0.5, 1: 0.5}) == 1.0
    assert fit_probability({}, {0: 1.0}) == 1.0
    assert fit_probability({5: 3}, {}) == 1.0
