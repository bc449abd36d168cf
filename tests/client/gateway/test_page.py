"""The page about the gateway, compared with the code."""

from __future__ import annotations

from pathlib import Path

from tinkerwire._gateway.emulation_table import EMULATIONS

PAGE = Path(__file__).parents[3] / "docs" / "gateway.md"


def test_page_lists_all_emulations() -> None:
    """The rows are those of the code, in their order."""
    section = PAGE.read_text().partition("## Emulations\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert rows[1:] == [f"| {' | '.join(row)} |" for row in EMULATIONS]
