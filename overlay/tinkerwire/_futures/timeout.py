"""``asyncio.wait_for`` that never loses a cancellation, on every supported Python."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

if sys.version_info >= (3, 12):
    wait_for = asyncio.wait_for
else:

    async def wait_for(fut: Awaitable[T], timeout: float | None) -> T:
        """Wait like ``asyncio.wait_for``, which before Python 3.12 loses a cancellation that arrives with the result.

        A lost cancellation would let a loop of requests run past its deadline.

        Raises:
            asyncio.TimeoutError: ``timeout`` seconds have passed; the awaited object is cancelled.
        """
        if timeout is None:
            return await fut
        task = asyncio.ensure_future(fut)
        try:
            await asyncio.wait({task}, timeout=timeout)
        except asyncio.CancelledError:
            await _cancel(task)
            raise
        if not task.done():
            await _cancel(task)
            if task.cancelled():
                raise asyncio.TimeoutError
        return task.result()

    async def _cancel(task: asyncio.Future[T]) -> None:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            # The cancelled caller does not get the error; retrieving it keeps asyncio from logging it.
            task.exception()
