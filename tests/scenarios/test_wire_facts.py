"""Facts of the wire in the hand-written code: they come from the contract."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tinkerwire.version import __version__

OVERLAY = Path(__file__).parents[2] / "overlay"
KIT = OVERLAY / "tinkerwire" / "_conformance"
VERSION = re.compile(r"\d+\.\d+\.\d+")


def find_version_literals(source: str) -> list[str]:
    """Return the string literals of a module that are versions."""
    return [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VERSION.fullmatch(node.value)
    ]


def test_overlay_has_no_version_literals() -> None:
    """A wire version is read from the contract; only the version of this package is written by hand.

    The conformance kit is checked by tests/client/conformance/test_catalogue.py instead: a requirement is a statement
    about versions of the wire and of the official SDK, which the test holds against the contract.
    """
    literals = {
        str(path.relative_to(OVERLAY)): versions
        for path in sorted(OVERLAY.rglob("*.py"))
        if KIT not in path.parents and (versions := find_version_literals(path.read_text(encoding="utf-8")))
    }
    assert literals == {"tinkerwire/version.py": [__version__]}


@pytest.mark.parametrize("source", ['SINCE = "0.25.0"', 'is_in_range(version, "0.18.2", None)'])
def test_search_finds_version_literals(source: str) -> None:
    """The search finds versions in assignments and in calls."""
    assert len(find_version_literals(source)) == 1
