"""Tests that docs/known-bugs.md names, and the outcomes of these tests in a run."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "docs" / "known-bugs.md"
TEST_NAME = re.compile(r"`([^`\s]+\.py)::(\w+)`")

WITH_TORCH = frozenset({"tests/base/test_torch.py"})
"""Modules that are skipped without torch; `make test-torch` runs them."""


def is_provable(file: str) -> bool:
    """Return whether the tests of a module can run in this environment."""
    return file not in WITH_TORCH or importlib.util.find_spec("torch") is not None


def read_rows() -> list[list[str]]:
    """Return the cells of each row of each table, without headings and rules."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("bug", "quirk") and not set(row[0]) <= set("-: ")]


def list_named_tests() -> list[tuple[str, str]]:
    """Return file and function of each test that the tables name."""
    return sorted({test for row in read_rows() for test in TEST_NAME.findall(row[-1])})


def find_unproven(tests: Iterable[tuple[str, str]], outcomes: Mapping[str, str]) -> list[str]:
    """Return the tests of which no case passed.

    Args:
        tests: file and function of each.
        outcomes: ``passed``, ``failed`` or ``skipped`` by pytest's id of a test.
    """
    passed = {id.partition("[")[0] for id, outcome in outcomes.items() if outcome == "passed"}
    return [f"{file}::{name}" for file, name in tests if f"{file}::{name}" not in passed]
