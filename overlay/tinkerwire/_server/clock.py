"""Clock for the ages of sessions and results."""

from __future__ import annotations

import time


class SteadyClock:
    """Seconds since the epoch at the start, counted on by the monotonic clock.

    Sessions and results therefore age only while a server runs. Neither a jump of the wall clock nor a long time
    without a server, in which clients cannot send heartbeats, expires them.

    Args:
        start: time at which the previous server on the folder ended; None for a new folder.
    """

    def __init__(self, start: float | None) -> None:
        self._offset_s = (time.time() if start is None else start) - time.monotonic()

    def __call__(self) -> float:
        """Return the seconds since the epoch."""
        return self._offset_s + time.monotonic()
