"""Waiting for something for so long; who is cancelled meanwhile is cancelled, on every Python."""

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
        """As ``asyncio.wait_for``, which before Python 3.12 loses a cancellation that comes together with the result.

        Without it a loop of requests goes on past its deadline for ever.

        Raises:
            asyncio.TimeoutError: ``timeout`` seconds are over; what was waited for has been cancelled.
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
            # Whoever is cancelled hears of no error, and asyncio need not complain that nobody did.
            task.exception()
