"""Request ids: a number in one of several formats."""

from __future__ import annotations

import uuid

FIRST_INTEGER = 1000
UUID_OFFSET = uuid.UUID("0b5c6f3e-8a1d-4c70-9e00-000000000000").int


class RequestIds:
    """Request ids of one server.

    Args:
        form: ``default`` (``f-1a2b3c4d-7``), ``integer`` (``1007``), ``uuid`` or ``prefixed`` (``req:1a2b3c4d/7``).
        run: hexadecimal digits in the ids, which distinguish servers; None draws them.
    """

    def __init__(self, form: str = "default", run: str | None = None) -> None:
        self._form = form
        self.run = run = run or uuid.uuid4().hex[:8]
        """Hexadecimal digits in the ids."""
        self._prefix = {"default": f"f-{run}-", "prefixed": f"req:{run}/"}.get(form, "")

    def create(self, number: int) -> str:
        """Create the id for a number, which must be at least 1."""
        if self._form == "uuid":
            return str(uuid.UUID(int=UUID_OFFSET + number))
        return f"{self._prefix}{number + (FIRST_INTEGER if self._form == 'integer' else 0)}"

    def parse(self, request_id: str) -> int | None:
        """Return the number of an id, which need not be in use; None if the text is not an id of this server."""
        if self._form == "uuid":
            try:
                return uuid.UUID(request_id).int - UUID_OFFSET
            except ValueError:
                return None
        digits = request_id.removeprefix(self._prefix)
        if not request_id.startswith(self._prefix) or not digits.isdecimal():
            return None
        return int(digits[:18]) - (FIRST_INTEGER if self._form == "integer" else 0)
