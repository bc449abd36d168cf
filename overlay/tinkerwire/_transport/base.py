"""The protocol of transports, and the limits that all transports share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from tinkerwire_base.call import WireRequest, WireResponse

from .._futures.deadline import clamp_timeout, remaining_s
from .backpressure import Traffic
from .errors import no_time_error


class Transport(Protocol):
    """Sends one request and brings its answer; used on one event loop."""

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """The answer, whatever its status.

        The time begins once there is a free connection; the wait for one ends with the operation's deadline.

        Raises:
            APITimeoutError: it was not here in full within ``timeout_s`` seconds, more than 0.
            APIConnectionError: there was none.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def remaining_seconds(timeout_s: float) -> float | None:
    """Return the time limit of a request that starts now, as the libraries take it."""
    return clamp_timeout(min(timeout_s, remaining_s()))


@asynccontextmanager
async def connection_slot(free: asyncio.Semaphore, request: WireRequest, base_url: str) -> AsyncIterator[None]:
    """Hold a free connection of a traffic class; the wait for the connection ends with the operation's deadline."""
    if free.locked():
        taking = asyncio.ensure_future(free.acquire())
        is_in_time = False
        try:
            await asyncio.wait({taking}, timeout=clamp_timeout(remaining_s()))
            is_in_time = taking.done()
        finally:
            if not is_in_time:
                taking.cancel()
                # It may get its place in the very moment in which it is given up.
                taking.add_done_callback(lambda task: None if task.cancelled() else free.release())
        if not is_in_time:
            raise no_time_error(request, base_url, "no connection was free")
    else:
        await free.acquire()
    try:
        yield
    finally:
        free.release()
