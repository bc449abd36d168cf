"""The table of faults: every row has its parts, and every test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "faults.md"
COLUMNS = 4
NAMED = re.compile(r"`([^`\s]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    """The cells of each row of each table, without heads and rules."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "fault" and not set(row[0]) <= set("-: ")]


def named() -> list[tuple[str, str]]:
    """File and function of each test that the table names."""
    return sorted({found for row in rows() for found in NAMED.findall(row[-1])})


def collected(file: Path) -> set[str]:
    """The tests of a module."""
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_every_row_is_whole() -> None:
    """A name, an origin, what is done, and at least one test; no fault twice."""
    found = rows()
    assert found
    for row in found:
        assert len(row) == COLUMNS, row
        assert all(row), row
        assert NAMED.search(row[-1]), row
    names = [row[0] for row in found]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("file", "name"), named())
def test_every_test_is_there(file: str, name: str) -> None:
    """What the table names as its proof is a test."""
    assert file.startswith("tests/")
    assert name in collected(ROOT / file)
