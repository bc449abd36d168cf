"""Cancellation of abandoned samples on servers that support it."""

from __future__ import annotations

from collections import deque

from tinkerwire_base.errors import TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.auth import client_dynamic_config
from tinkerwire_generated.api.futures import cancel_future

from .._connection.connection import Connection
from .._connection.retry import SINGLE_ATTEMPT
from .._futures.logger import log
from .._transport.backpressure import Traffic

CANCEL_TIMEOUT_S = 10.0
MAX_QUEUED_CANCELLATIONS = 10_000
"""Limit of queued cancellations; the server finishes further samples for nothing."""


class SampleCanceller:
    """Cancels the samples of one connection. Used on the loop thread; raises no error and delays no operation."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: deque[str] = deque()
        self._max_concurrent: int | None = None
        """None before the server's limit is known; 0 if the server does not support cancellation."""
        self._workers = 0

    def add(self, request_id: str) -> None:
        """Queue the cancellation of a sample whose caller has given up."""
        if self._connection.closed or self._max_concurrent == 0 or len(self._queue) >= MAX_QUEUED_CANCELLATIONS:
            return
        self._queue.append(request_id)
        self._start_worker()

    def _start_worker(self) -> None:
        """Start another worker within the server's limit if cancellations are queued; one before it is known."""
        if self._queue and self._workers < (self._max_concurrent or 1):
            self._workers += 1
            self._connection.operations.spawn(self._drain())

    async def _drain(self) -> None:
        try:
            if self._max_concurrent is None:
                self._max_concurrent = await self._fetch_limit()
            if self._max_concurrent == 0:
                self._queue.clear()
            while self._queue:
                request_id = self._queue.popleft()
                self._start_worker()
                await self._cancel(request_id)
        finally:
            self._workers -= 1

    async def _fetch_limit(self) -> int:
        """Return the number of cancellations that the server accepts at once; 0 if it does not support them."""
        try:
            dialect = await self._connection.dialect()
            if not (
                dialect.may_have_operation("client_dynamic_config") and dialect.may_have_operation("cancel_future")
            ):
                return 0
            call = client_dynamic_config(body=models.ClientConfigRequest(sdk_version=dialect.max_version))
            config = await self._connection.call(
                call, Traffic.SESSION, retry=SINGLE_ATTEMPT, timeout_s=CANCEL_TIMEOUT_S
            )
        except (TinkerError, ValueError) as error:
            log.debug("samples are not cancelled on the server: its limit of cancellations is unknown: %s", error)
            return 0
        return max(1, config.sample_cancel_max_batch_size) if config.sample_cancel_enabled else 0

    async def _cancel(self, request_id: str) -> None:
        call = cancel_future(body=models.CancelFutureRequest(request_id=request_id))
        try:
            await self._connection.call(
                call, Traffic.SAMPLING_FUTURES, retry=SINGLE_ATTEMPT, timeout_s=CANCEL_TIMEOUT_S
            )
        except TinkerError as error:
            log.debug("the sample %s could not be cancelled on the server: %s", request_id, error)
