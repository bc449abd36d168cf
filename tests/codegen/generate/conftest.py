"""Fixtures of the generator's tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.generated_package import SCHEMA


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """Copy the contract, to change it."""
    return Path(shutil.copytree(SCHEMA, tmp_path / "schema"))
