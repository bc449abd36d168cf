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
    entries: list[T] = []
    cursor: models.Cursor | None = None
    with progress(options, f"Fetching {noun}", limit or page_size) as advance:
        while True:
            missing = page_size if limit == 0 else min(page_size, limit - len(entries))
            page, cursor = fetch(missing, len(entries))
            entries += page
            advance(len(page))
            total = len(entries) if cursor is None else max(cursor.total_count or 0, len(entries))
            # A page may be short; an empty page ends the list, whatever the server counts.
            if not page or len(entries) >= (total if limit == 0 else min(limit, total)):
                return entries, total


def describe_count(shown: int, total: int, noun: str) -> str:
    """Return the title of a listing."""
    if not total:
        return f"No {noun}s."
    title = f"{shown} {noun}{'s' * (shown != 1)}"
    return title if shown >= total else f"{title} of {total}; --limit 0 shows all"
