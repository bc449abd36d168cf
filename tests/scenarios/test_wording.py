"""Tests of wording: texts use standard terms, and sentences have a subject and a verb."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.wording import find_wording

ROOT = Path(__file__).resolve().parents[2]
QUOTED = (
    "tests/support/wording.py",
    "tests/scenarios/test_wording.py",
    # Programs and texts with deliberately unusual names.
    "tests/codegen/generate/test_names.py",
    # Fault injection.
    "overlay/tinkerwire/_server/emulation/",
    "overlay/tinkerwire/_server/app.py",
    "tests/server/emulation/test_fault_injection.py",
)
"""Files that name the words on purpose."""

FOLDERS = (
    "overlay",
    "codegen",
    "tests",
    "docs",
    "schema",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)


def list_files() -> list[Path]:
    """Return the files of the project whose texts are checked."""
    names = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    suffixes = (".py", ".md", ".yaml")
    return [ROOT / name for name in names.splitlines() if name.endswith(suffixes) and not name.startswith(QUOTED)]


def test_texts_use_standard_terms() -> None:
    """No text has a banned word or opens without a main clause."""
    findings = [line for path in list_files() for line in find_wording(path)]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""What the server gives."""', 1),
        ("# Whether it is told.", 2),
        ('x = "is no number, says the server"', 2),
        ('"""Return the response; the fault injection says nothing."""', 1),
        ('"""Inject faults. Is `fault` quoted?"""', 0),
    ],
)
def test_search_finds_banned_words(tmp_path: Path, text: str, count: int) -> None:
    """Docstrings, comments and strings are searched; quoted code and fault injection are not."""
    file = tmp_path / "module.py"
    file.write_text(text + "\n")
    assert len(find_wording(file)) == count
