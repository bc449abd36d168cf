"""Records of requests that make the server build something, in case their callers give up."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import RequestTimeoutError, TinkerError
from tinkerwire_generated import models

from .._futures.build_request import BuildRequest
from .._futures.deadline import deadline_error, is_deadline_passed, remaining_s
from .._futures.operation_record import current_operation
from .._transport.backpressure import Traffic
from .._wire.server_futures import DeferredResult

T = TypeVar("T")
LATE_S = 5.0
"""Time after a caller gave up in which the response may still arrive; it names what the server builds."""
SendAttempt: TypeAlias = Callable[[WireRequest, Traffic, float, float], Coroutine[Any, Any, WireResponse]]
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, WireResponse]], asyncio.Task[WireResponse]]


class BuildRecorder:
    """Records one request in the current operation until its result arrives.

    Args:
        request: the request.
        exchange: sends an attempt and returns the response.
        spawn: runs an attempt that its caller does not cancel.
        is_in_line: whether later operations wait for the end of this request, so that its deadline ends it.
    """

    def __init__(self, request: WireRequest, exchange: SendAttempt, spawn: Spawn, *, is_in_line: bool) -> None:
        self._exchange = exchange
        self._spawn = spawn
        self._late_s = 0.0 if is_in_line else LATE_S
        self._build = BuildRequest(request=request)

    def reader(self, read: Callable[[WireResponse], T]) -> Callable[[WireResponse], T]:
        """Return a reader that also records the future in a response."""

        def read_and_record(response: WireResponse) -> T:
            try:
                result = read(response)
            except DeferredResult as deferred:
                self._build.request_id = deferred.request_id
                raise
            if isinstance(result, models.UntypedAPIFuture):
                self._build.request_id = result.request_id
            return result

        return read_and_record

    async def exchange(self, request: WireRequest, traffic: Traffic, timeout_s: float, max_s: float) -> WireResponse:
        """Send an attempt in a task that continues when its caller gives up: the response names what the server builds.

        Raises:
            TinkerError: the attempt failed.
        """
        if is_deadline_passed():
            raise deadline_error()
        build, left_s = self._build, remaining_s()
        limit_s = max_s if left_s == math.inf else left_s + self._late_s
        task = build.response = self._spawn(self._exchange(request, traffic, timeout_s, limit_s))
        await asyncio.wait([task])
        build.response = None
        try:
            response = task.result()
        except TinkerError as error:
            build.may_be_accepted = build.may_be_accepted or error.may_have_been_sent is not False
            raise
        build.may_be_accepted = build.may_be_accepted or response.status >= 500
        return response

    async def record(self, sending: Awaitable[T]) -> T:
        """Wait for the request, and keep the record as long as the server may build something.

        Raises:
            TinkerError: the last attempt failed.
        """
        record = current_operation()
        record.builds += (self._build,)
        try:
            result = await sending
        except RequestTimeoutError:
            raise
        except TinkerError:
            if not is_deadline_passed():
                record.remove_build(self._build)
            raise
        if not isinstance(result, models.UntypedAPIFuture):
            record.remove_build(self._build)
        return result
