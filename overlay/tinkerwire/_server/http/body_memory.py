"""Limit of the memory that the bodies of all requests take together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tinkerwire._server.http.responses import HttpError

MAX_HELD_BYTES = 2**30
"""Maximum of the bodies that are read or handled at the same time: sixteen of the largest."""


class BodyMemory:
    """The bytes of the bodies that a server holds. Used on one event loop.

    Args:
        max_bytes: their maximum.
    """

    def __init__(self, max_bytes: int = MAX_HELD_BYTES) -> None:
        self._free_bytes = max_bytes

    @contextmanager
    def hold(self) -> Iterator[Callable[[int], None]]:
        """Return a function that takes memory for more bytes of a body; the memory is free again at the end.

        The function raises HttpError 503, which clients retry, if too little is free.
        """
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            if size > self._free_bytes:
                raise HttpError(503, "the bodies of other requests take all memory; retry", {"retry-after": "1"})
            taken += size
            self._free_bytes -= size

        try:
            yield take
        finally:
            self._free_bytes += taken
