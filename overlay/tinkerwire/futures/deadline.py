"""The time limit of one operation, from the call on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tinkerwire_base.checks import is_number
from tinkerwire_base.errors import RequestTimeoutError, TinkerError

from .tracking import current

T = TypeVar("T")


def checked_timeout(timeout: float | None) -> float | None:
    """The limit in seconds, None for none. TypeError or ValueError for what is no time to wait."""
    if timeout is not None:
        is_number("timeout", timeout)
        if not timeout > 0:
            raise ValueError(f"timeout: {timeout} s is no time to wait; None is without a limit of its own")
    return timeout


async def within(timeout: float | None, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of an operation, which is cancelled after ``timeout`` seconds with RequestTimeoutError."""
    try:
        return await asyncio.wait_for(work(), timeout)
    except TinkerError:
        raise
    except asyncio.TimeoutError:
        track = current()
        why = f": {track.reason}" if track.reason else ""
        request_id = track.request_ids[-1] if track.request_ids else ""
        raise RequestTimeoutError(
            f"{track.kind} {request_id or '(not submitted)'}: no result within timeout={timeout:g} s "
            f"({'queue ' + track.queue_state + why if track.queue_state else track.step or 'it waits in line'})",
            request_id=request_id,
        ) from None
