"""A lock that is free in a forked child."""

from __future__ import annotations

import os
import threading


class ForkLock:
    """A reentrant lock that a forked child finds free: the thread that held it may not exist there.

    ``with lock.current:`` holds it. Whoever holds it during a fork releases the lock of before.
    """

    def __init__(self) -> None:
        self._replace()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._replace)

    def _replace(self) -> None:
        self.current = threading.RLock()
