"""Listings of several pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tinkerwire_generated import models

from .framework import SharedOptions
from .output import progress

T = TypeVar("T")

Page = tuple[Sequence[T], models.Cursor | None]


def fetch_pages(
    options: SharedOptions, noun: str, fetch: Callable[[int, int], Page[T]], limit: int, page_size: int
) -> tuple[list[T], int]:
    """Fetch entries up to a limit, and return them with the number of entries of the server.

    Args:
        options: decide whether the progress is shown.
        noun: the entries, for the label of the progress bar.
        fetch: returns one page, by its limit and offset.
        limit: number of entries; 0 for all.
        page_size: maximum number of entries of one request.
    """
    if limit < 0:
        raise ValueError(f"--limit must be at least 0, got {limit}")
    page, cursor = fetch(page_size if limit == 0 else min(page_size, limit), 0)
    entries = list(page)
    total = _count_all(entries, cursor)
    expected = total if limit == 0 else min(limit, total)
    if not page or len(entries) >= expected:
        return entries, total
    with progress(options, f"Fetching {noun}", expected) as advance:
        advance(len(page))
        # A page may be short; an empty page ends the list, whatever the server counts.
        while page and len(entries) < expected:
            missing = page_size if limit == 0 else min(page_size, limit - len(entries))
            page, cursor = fetch(missing, len(entries))
            entries += page
            advance(len(page))
            total = _count_all(entries, cursor)
            expected = total if limit == 0 else min(limit, total)
    return entries, total


def _count_all(entries: Sequence[object], cursor: models.Cursor | None) -> int:
    """Return the number of entries of the server."""
    return len(entries) if cursor is None else max(cursor.total_count or 0, len(entries))


def describe_count(shown: int, total: int, noun: str) -> str:
    """Return the title of a listing."""
    if not total:
        return f"No {noun}s."
    title = f"{shown} {noun}{'s' * (shown != 1)}"
    return title if shown >= total else f"{title} of {total}; --limit 0 shows all"
