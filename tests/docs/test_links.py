"""Tests of the links between pages, as the repository shows them; the build of the site checks those of the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "schema" / "README.md"]
LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_links_of_the_page_lead_somewhere(page: str) -> None:
    """Files exist in the repository, and headings on the pages."""
    missing = []
    for link in LINK.finditer(FENCE.sub("", (ROOT / page).read_text())):
        target = (ROOT / page).parent / link["path"] if link["path"] else ROOT / page
        is_page = target.suffix == ".md" and target.exists()
        if not target.exists() or (is_page and link["anchor"] and link["anchor"] not in list_anchors(target)):
            missing.append(link[0])
    assert not missing
