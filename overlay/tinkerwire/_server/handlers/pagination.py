"""Pagination of lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import HttpError
from tinkerwire_generated.models import Cursor

T = TypeVar("T")


def paginate(request: Request, entries: Sequence[T]) -> tuple[list[T], Cursor]:
    """Return the page of entries that limit and offset select.

    Raises:
        HttpError: 422 if limit or offset is negative.
    """
    limit, offset = request.query["limit"], request.query["offset"]
    errors = [
        {"loc": ["query", name], "msg": f"must be at least 0, got {value}", "type": "minimum"}
        for name, value in (("limit", limit), ("offset", offset))
        if value < 0
    ]
    if errors:
        raise HttpError(422, errors)
    return list(entries[offset : offset + limit]), Cursor(offset=offset, limit=limit, total_count=len(entries))
