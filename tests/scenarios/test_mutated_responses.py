"""Tests with mutated responses and arguments."""

from __future__ import annotations

import pytest

from rigs.fuzz.run import read_kept_seeds, run_cases

CASES = 150


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")
def test_mutated_responses_and_arguments_raise_only_public_errors() -> None:
    """Seeds that once found a bug, and others; ``make fuzz`` tries new ones for an hour."""
    problems = [problem for _, problem in run_cases([*read_kept_seeds(), *range(CASES)]) if problem is not None]
    assert not problems, "\n".join(f"seed {problem.seed}: {problem.text}" for problem in problems)
