"""Whatever a server answers and whatever a user gives: only our own exceptions, and in time."""

from __future__ import annotations

import pytest

from rigs.fuzz.run import kept_seeds, run_cases

CASES = 150


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")
def test_mutated_answers_and_arguments_raise_only_public_errors() -> None:
    """The seeds that found a fault once and further ones; ``make fuzz`` tries new ones for an hour."""
    problems = [problem for _, problem in run_cases([*kept_seeds(), *range(CASES)]) if problem is not None]
    assert not problems, "\n".join(f"seed {each.seed}: {each.text}" for each in problems)
