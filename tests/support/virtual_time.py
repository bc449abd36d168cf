"""An event loop whose clock jumps to the next timer when nothing else is to be done: hours pass in no time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Only for coroutines that wait for timers and for each other, not for sockets or threads."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready:
            if not self._scheduled:
                raise RuntimeError("deadlock: every task waits, and no timer is set")
            self._now = max(self._now, self._scheduled[0].when())
        super()._run_once()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time; RuntimeError when it can never end."""
    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_soon(lambda: None)
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
