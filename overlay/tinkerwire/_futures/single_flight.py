"""Result of work that runs once for many waiters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from .deadline import clamp_timeout, create_task_without_deadline, deadline_error, remaining_s

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Result of work that the first caller starts; after a failure the next caller starts it again.

    Used on the loop thread. A cancelled waiter does not affect the others.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """Return the result, or raise the error of the work.

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
        """Start the work without waiting for it; a later :meth:`get` raises its error."""
        self._start_unless_running()

    def _start_unless_running(self) -> asyncio.Task[T]:
        task = self._task
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._task = create_task_without_deadline(self._work())
            # get() raises the error; asyncio need not log it.
            task.add_done_callback(lambda task: None if task.cancelled() else task.exception())
        return task

    async def close(self) -> None:
        """Cancel running work and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
