"""Tests of the README: its code runs, and its paths and targets exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_first_example_runs_unchanged() -> None:
    """The first block prints a falling loss and a sample."""
    run = subprocess.run([sys.executable, "-c", BLOCKS[0]], capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    assert float(re.findall(r"loss ([\d.]+)", run.stdout)[0]) < 5.0


def test_every_path_and_target_exists() -> None:
    """Files, folders and make targets of the README exist."""
    links = re.findall(r"\]\(((?!http)[^)]+)\)", README)
    rooms = re.findall(r"`((?:schema|codegen|generated|overlay|tests|docs)/)`", README)
    for name in links + rooms:
        assert (ROOT / name).exists(), name
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", README)) <= targets


@pytest.mark.parametrize("guide", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_of_the_guides_exist(guide: str) -> None:
    """Every file and folder that a guide names exists, in the repository or below overlay."""
    roots = [ROOT, ROOT / "overlay", ROOT / "overlay" / "tinkerwire"]
    names = re.findall(r"`(\w[\w./-]*/[\w.-]*)`", (ROOT / guide).read_text())
    placeholders = re.compile(r"[A-Z]{3,}\.(py|yaml|md)")
    missing = [
        name for name in names if not placeholders.search(name) and not any((root / name).exists() for root in roots)
    ]
    assert names
    assert not missing
