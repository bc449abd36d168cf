"""The forms of request ids: each is made of a number, and says which."""

from __future__ import annotations

import uuid

FIRST_INTEGER = 1000
UUIDS = uuid.UUID("0b5c6f3e-8a1d-4c70-9e00-000000000000").int


class RequestIds:
    """Request ids of one server.

    Args:
        form: ``own`` (``f-1a2b3c4d-7``), ``integer`` (``1007``), ``uuid`` or ``prefixed`` (``req:1a2b3c4d/7``).
    """

    def __init__(self, form: str = "own") -> None:
        self._form = form
        run = uuid.uuid4().hex[:8]
        self._prefix = {"own": f"f-{run}-", "prefixed": f"req:{run}/"}.get(form, "")

    def of(self, number: int) -> str:
        """The id of a number, 1 or more."""
        if self._form == "uuid":
            return str(uuid.UUID(int=UUIDS + number))
        return f"{self._prefix}{number + (FIRST_INTEGER if self._form == 'integer' else 0)}"

    def number(self, request_id: str) -> int | None:
        """The number of an id that may never have been given; None for what is no such id."""
        if self._form == "uuid":
            try:
                return uuid.UUID(request_id).int - UUIDS
            except ValueError:
                return None
        digits = request_id.removeprefix(self._prefix)
        is_own = request_id.startswith(self._prefix) and digits.isdecimal()
        return int(digits[:18]) - (FIRST_INTEGER if self._form == "integer" else 0) if is_own else None
