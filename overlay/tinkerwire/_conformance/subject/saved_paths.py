"""The paths of the checkpoints of a run, for their deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SavedPaths:
    """The paths of the checkpoints that a run saved, and the saves that are in progress."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._running: set[asyncio.Future[Any]] = set()

    def append(self, path: str) -> None:
        """Note the path of a checkpoint."""
        self._paths.append(path)

    async def complete(self, save: Coroutine[Any, Any, T]) -> T:
        """Run a save, to its end even if the caller is cancelled, and return its result."""
        running = asyncio.ensure_future(save)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    async def settle(self, timeout_s: float) -> list[str]:
        """Wait for the saves whose callers were cancelled, and return all paths."""
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)
        return self._paths
