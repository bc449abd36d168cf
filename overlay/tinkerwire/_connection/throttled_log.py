"""Warnings that thousands of operations may have cause for, logged only now and then."""

from __future__ import annotations

import time

from .._futures.logger import log

WARNING_INTERVAL_S = 10.0


class ThrottledLog:
    """Logs the first warning of each kind, and at most one more in every ten seconds."""

    def __init__(self) -> None:
        self._last_warned: dict[str, float] = {}

    def warn(self, kind: str, message: str, *parts: object) -> None:
        """Log a warning unless one of the same kind was logged a short time ago."""
        now = time.monotonic()
        if now - self._last_warned.get(kind, float("-inf")) >= WARNING_INTERVAL_S:
            self._last_warned[kind] = now
            log.warning(message, *parts)
