"""The protocol of transports, and the limits that all transports share."""

from __future__ import annotations

import asyncio
from typing import Protocol

from tinkerwire_base.call import WireRequest, WireResponse

from .._futures.deadline import clamp_timeout, remaining_s
from .._futures.operation_record import current_operation
from .backpressure import Traffic
from .errors import no_time_error


class Transport(Protocol):
    """Sends requests to one server; used on one event loop."""

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """Send a request and return the response of any status.

        The time limit starts once a connection is free; the wait for a free connection ends at the deadline of the
        operation.

        Args:
            request: the request, with all its headers.
            traffic: the kind of the request.
            timeout_s: time limit for the whole response, greater than 0.

        Raises:
            APITimeoutError: the response was not complete in time.
            APIConnectionError: the connection failed.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def remaining_seconds(timeout_s: float) -> float | None:
    """Return the time limit of a request that starts now, in the form that HTTP libraries accept."""
    return clamp_timeout(min(timeout_s, remaining_s()))


class ConnectionSlot:
    """Free connection of a traffic class; the wait for it ends with the operation's deadline.

    Raises:
        APITimeoutError: no connection was free in time.
    """

    __slots__ = ("_base_url", "_free", "_request")

    def __init__(self, free: asyncio.Semaphore, request: WireRequest, base_url: str) -> None:
        self._free = free
        self._request = request
        self._base_url = base_url

    async def __aenter__(self) -> None:
        """Wait for a free connection."""
        if self._free.locked():
            await self._wait()
        else:
            await self._free.acquire()

    async def __aexit__(self, *_: object) -> None:
        """Free the connection."""
        self._free.release()

    async def _wait(self) -> None:
        acquiring = asyncio.ensure_future(self._free.acquire())
        is_in_time = False
        trace = current_operation().trace
        if trace is not None:
            trace.add("wait_connection")
        try:
            await asyncio.wait({acquiring}, timeout=clamp_timeout(remaining_s()))
            is_in_time = acquiring.done()
            if trace is not None:
                trace.add("connection")
        finally:
            if not is_in_time:
                acquiring.cancel()
                # The semaphore may be acquired at the moment of the cancellation.
                acquiring.add_done_callback(lambda task: None if task.cancelled() else self._free.release())
        if not is_in_time:
            raise no_time_error(self._request, self._base_url, "no connection was free")
