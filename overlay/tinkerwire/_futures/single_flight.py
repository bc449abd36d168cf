"""One result that many wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from .deadline import clamp_timeout, create_task_without_deadline, deadline_error, remaining_s

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The result of some work, which the first to ask starts; after a failure the next to ask tries again.

    Used on the loop thread. Whoever is cancelled while waiting takes nothing away from the others.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """The result; raises what the work raised.

        Raises:
            RequestTimeoutError: the deadline of the calling operation passed; the work continues for others.
        """
        task = self._start_unless_running()
        # Other than asyncio.shield, this reports nothing when the work fails and its waiter was cancelled.
        await asyncio.wait([task], timeout=clamp_timeout(remaining_s()))
        if not task.done():
            raise deadline_error()
        return task.result()

    def start(self) -> None:
        """Start the work without waiting for it; whoever asks for the result later sees its error."""
        self._start_unless_running()

    def _start_unless_running(self) -> asyncio.Task[T]:
        task = self._task
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._task = create_task_without_deadline(self._work())
            # Whoever asks for it hears of its error; asyncio need not log it.
            task.add_done_callback(lambda task: None if task.cancelled() else task.exception())
        return task

    async def close(self) -> None:
        """Cancel work that still goes on, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
