"""Warnings that many operations may cause at once, logged at limited frequency."""

from __future__ import annotations

import time

from .._futures.logger import log

WARNING_INTERVAL_S = 10.0


class ThrottledLog:
    """Logs the first warning of each kind, and at most one more in every ten seconds."""

    def __init__(self) -> None:
        self._last_warned: dict[str, float] = {}

    def warn(self, kind: str, message: str, *args: object) -> None:
        """Log a warning unless a warning of the same kind was logged in the last ten seconds."""
        now = time.monotonic()
        if now - self._last_warned.get(kind, float("-inf")) >= WARNING_INTERVAL_S:
            self._last_warned[kind] = now
            log.warning(message, *args)
