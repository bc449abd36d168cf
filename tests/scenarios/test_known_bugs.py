"""Tests of docs/known-bugs.md: every row is complete, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support.proofs import TEST_NAME, find_unproven, list_named_tests, read_rows

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = (4, 5)
"""A quirk also has the modules that handle it."""
HANDLERS = re.compile(r"`(_[a-z_/]+\.py)`")


def list_functions(file: Path) -> set[str]:
    """Return the tests of a module."""
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_every_row_is_complete() -> None:
    """A row has a bug, an origin, a behaviour and a test; no bug is listed twice."""
    bugs = read_rows()
    assert bugs
    for row in bugs:
        assert len(row) in COLUMNS, row
        assert all(row), row
        assert TEST_NAME.search(row[-1]), row
    names = [row[0] for row in bugs]
    assert len(set(names)) == len(names)


def test_quirks_name_the_modules_that_handle_them() -> None:
    """Each quirk names modules of the client that exist; the last row covers all quirks."""
    handlers = [HANDLERS.findall(row[-2]) for row in read_rows() if len(row) == max(COLUMNS)]
    assert len(handlers) > 10
    assert all(handlers[:-1])
    missing = [path for paths in handlers for path in paths if not (ROOT / "overlay" / "tinkerwire" / path).is_file()]
    assert missing == []


@pytest.mark.parametrize(("file", "name"), list_named_tests())
def test_every_named_test_runs(file: str, name: str, request: pytest.FixtureRequest) -> None:
    """Pytest collects each named test, and no mark skips it or lets it fail.

    tests/conftest.py fails a run of the whole suite in which one of them did not pass.
    """
    assert file.startswith("tests/")
    assert name in list_functions(ROOT / file)
    items = [item for item in request.session.items if item.path == ROOT / file]
    if not items or request.config.option.keyword or request.config.option.markexpr:
        return
    tests = [item for item in items if getattr(item, "originalname", None) == name]
    # A run of single tests collects those only.
    is_whole_file = not any("::" in argument for argument in request.config.args)
    assert tests or not is_whole_file
    for item in tests:
        assert not [mark.name for mark in item.iter_markers() if mark.name in ("skip", "xfail")]


def test_unproven_rows_are_listed() -> None:
    """A test that was skipped or did not run counts as unproven."""
    outcomes = {"tests/a.py::test_a[1]": "passed", "tests/a.py::test_a[2]": "skipped", "tests/a.py::test_b": "skipped"}
    proofs = [("tests/a.py", "test_a"), ("tests/a.py", "test_b"), ("tests/a.py", "test_c")]
    assert find_unproven(proofs, outcomes) == ["tests/a.py::test_b", "tests/a.py::test_c"]
