"""Lock that is free in a forked child."""

from __future__ import annotations

import os
import threading


class ForkLock:
    """Reentrant lock that is free in a forked child, where the holding thread may not exist.

    ``with lock.current:`` holds it. A thread that holds it during a fork releases the previous lock.
    """

    def __init__(self) -> None:
        self._replace()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._replace)

    def _replace(self) -> None:
        self.current = threading.RLock()
