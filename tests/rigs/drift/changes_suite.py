"""Edited copies of a real release: each single change is found exactly, each refactoring is silent.

Not part of the fast tests: `make drift` runs them and downloads the release.
"""

from __future__ import annotations

import pytest

from .changes import CHANGES
from .edited_release import Edit, Found, find_changes
from .refactorings import REFACTORINGS
from .request_changes import REQUEST_CHANGES
from .unreadable import UNREADABLE

ALL_CHANGES = {**CHANGES, **REQUEST_CHANGES}


@pytest.mark.parametrize("name", ALL_CHANGES)
def test_change_is_found_exactly(name: str) -> None:
    """A change is reported at its place, and nothing else is."""
    edit, expected = ALL_CHANGES[name]
    assert find_changes(edit) == (expected, [])


@pytest.mark.parametrize("name", REFACTORINGS)
def test_refactoring_is_silent(name: str) -> None:
    """A refactoring that leaves the wire as it is causes no report."""
    nothing: set[Found] = set()
    assert find_changes(REFACTORINGS[name]) == (nothing, [])


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_part_is_reported(name: str) -> None:
    """A part that cannot be read is reported with its file and line."""
    edit, place = UNREADABLE[name]
    assert any(problem.startswith(place) for problem in find_changes(edit)[1])


def test_original_is_equal() -> None:
    """The release itself matches the contract."""
    assert find_changes(Edit()) == (set(), [])


def test_tables_have_the_promised_size() -> None:
    """There are at least 80 changes and 40 refactorings."""
    assert len(ALL_CHANGES) >= 80
    assert len(REFACTORINGS) >= 40
