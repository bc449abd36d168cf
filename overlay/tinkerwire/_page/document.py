"""A page of HTML in one file, in light and dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path


def render_document(title: str, sections: Iterable[str], *, style: str = "", script: str = "") -> str:
    """Return a page: its title as heading, then the sections that are not empty.

    Args:
        title: the title, as plain text.
        sections: parts of the page, as HTML.
        style: further rules of CSS; ``page.css`` has the common ones.
        script: a script that runs when the page is complete; empty for none.
    """
    common = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    body = "\n".join(section for section in sections if section)
    end = f"<script>\n{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{common}{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</main>\n{end}</body>\n</html>\n"
    )


def render_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Return a row of facts, each a value with its name."""
    items = "".join(f"<li><b>{escape(value)}</b> {escape(name)}</li>" for value, name in facts)
    return f'<ul class="facts">{items}</ul>'
