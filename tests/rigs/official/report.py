"""Sections of a Markdown report that rigs rewrite while the rest of the file stays."""

from __future__ import annotations

from pathlib import Path

from tests.rigs.official.venv import ROOT

DOCS = ROOT / "docs"


def write_section(file: Path, name: str, text: str, *, title: str) -> None:
    """Put `text` between the begin and end marks of section `name`, which is added if missing.

    `title` is the heading of a file that is not there yet.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{text.strip()}\n{end}"
    old = file.read_text() if file.exists() else f"# {title}\n"
    head, separator, following = old.partition(begin)
    new = head + section + following.partition(end)[2] if separator else f"{old.rstrip()}\n\n{section}\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(new)
