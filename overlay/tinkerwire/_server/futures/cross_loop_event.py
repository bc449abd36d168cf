"""An event that any thread sets and that coroutines on any event loop wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class CrossLoopEvent:
    """An event that wakes all waiters each time it is set."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiters: list[Waiter] = []

    async def wait(self, timeout_s: float, is_met: Callable[[], bool]) -> None:
        """Wait for the next :meth:`set`, unless the condition is met already.

        Args:
            timeout_s: seconds to wait at most.
            is_met: returns whether the condition is met.
        """
        loop = asyncio.get_running_loop()
        wakeup: asyncio.Future[None] = loop.create_future()
        waiter = (loop, wakeup)
        with self._lock:
            # With the lock held, so that no set() between this check and the wait is missed.
            if is_met():
                return
            self._waiters.append(waiter)
        try:
            await asyncio.wait({wakeup}, timeout=timeout_s)
        finally:
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    def set(self) -> None:
        """Wake all waiters; their condition must be met before this call."""
        with self._lock:
            waiters, self._waiters = self._waiters, []
        for loop, wakeup in waiters:
            try:
                loop.call_soon_threadsafe(_wake, wakeup)
            except RuntimeError:
                # The loop was closed, and its waiters with it.
                continue


def _wake(wakeup: asyncio.Future[None]) -> None:
    if not wakeup.done():
        wakeup.set_result(None)
