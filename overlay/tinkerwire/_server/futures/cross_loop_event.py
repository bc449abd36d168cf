"""Something that happened on any thread, for coroutines that wait for it on any event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class CrossLoopEvent:
    """Wakes everybody who waits, as often as it is set off."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiters: list[Waiter] = []

    async def wait(self, timeout_s: float, is_over: Callable[[], bool]) -> None:
        """Wait for the next :meth:`wake`, ``timeout_s`` seconds at most; not at all when ``is_over`` already."""
        loop = asyncio.get_running_loop()
        arrival: asyncio.Future[None] = loop.create_future()
        waiter = (loop, arrival)
        with self._lock:
            # Under the lock of wake, so that what happens from here on is heard.
            if is_over():
                return
            self._waiters.append(waiter)
        try:
            await asyncio.wait({arrival}, timeout=timeout_s)
        finally:
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    def wake(self) -> None:
        """Wake who waits now; what they wait for must be true before."""
        with self._lock:
            waiters, self._waiters = self._waiters, []
        for loop, arrival in waiters:
            try:
                loop.call_soon_threadsafe(_set, arrival)
            except RuntimeError:
                # That loop was closed: nobody waits there any more.
                continue


def _set(arrival: asyncio.Future[None]) -> None:
    if not arrival.done():
        arrival.set_result(None)
