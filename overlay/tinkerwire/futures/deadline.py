"""The time limit of one operation, from the call on."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tinkerwire_base.errors import RequestTimeoutError, TinkerError

from .timeout import wait_for
from .tracking import current

T = TypeVar("T")


def limit(timeout: float | None) -> float | None:
    """Seconds as threads and loops take them; infinity is no limit. TypeError or ValueError for what is no time."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout: expected seconds, got {timeout!r:.100} ({type(timeout).__name__})")
    if math.isnan(timeout):
        raise ValueError("timeout: nan s is no time to wait")
    return None if timeout > threading.TIMEOUT_MAX else float(timeout)


def checked_timeout(timeout: float | None) -> float | None:
    """The limit in seconds, None for none. TypeError or ValueError for what is no time to wait."""
    seconds = limit(timeout)
    if seconds is not None and not seconds > 0:
        raise ValueError(f"timeout: {timeout} s is no time to wait; None is without a limit of its own")
    return seconds


async def within(timeout: float | None, work: Coroutine[Any, Any, T]) -> T:
    """The result of an operation, which is cancelled after ``timeout`` seconds with RequestTimeoutError."""
    try:
        return await wait_for(work, timeout)
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
