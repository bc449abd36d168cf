"""One page of a long list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import HttpError
from tinkerwire_generated.models import Cursor

T = TypeVar("T")


def page(request: Request, entries: Sequence[T]) -> tuple[list[T], Cursor]:
    """The entries that limit and offset ask for; Refusal 422 when one of them is below 0."""
    limit, offset = request.query["limit"], request.query["offset"]
    errors = [
        {"loc": ["query", name], "msg": f"expected 0 or more, got {value}", "type": "minimum"}
        for name, value in (("limit", limit), ("offset", offset))
        if value < 0
    ]
    if errors:
        raise HttpError(422, errors)
    return list(entries[offset : offset + limit]), Cursor(offset=offset, limit=limit, total_count=len(entries))
