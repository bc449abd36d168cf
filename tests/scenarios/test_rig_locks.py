"""Locks of the environments in which rigs run tinkerwire from its source have all that it needs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
LOCKED = re.compile(r"(?m)^([\w.-]+)==")
REQUIRED = re.compile(r"[\w.-]+")


def _read_names(lock: Path) -> set[str]:
    return {name.lower().replace("_", "-") for name in LOCKED.findall(lock.read_text())}


# The others are of environments in which only other packages run.
LOCKS = [lock for lock in sorted((ROOT / "tests" / "rigs").rglob("requirements*.txt")) if "cattrs" in _read_names(lock)]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: str(lock.relative_to(ROOT)))
def test_lock_has_the_dependencies_of_tinkerwire(lock: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {match[0] for text in project["dependencies"] if (match := REQUIRED.match(text))}
    assert required - _read_names(lock) == set()


def test_locks_are_found() -> None:
    assert len(LOCKS) >= 4
