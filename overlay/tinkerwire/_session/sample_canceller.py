"""Telling the server of samples that nobody waits for any longer, where it wants to know."""

from __future__ import annotations

from collections import deque

from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.api.auth import client_dynamic_config
from tinkerwire_generated.api.futures import cancel_future
from tinkerwire_generated.models import CancelFutureRequest, ClientConfigRequest

from .._connection.connection import Connection
from .._connection.retry import RetryConfig
from .._futures.logger import log
from .._transport.backpressure import Traffic

CANCEL_TIMEOUT_S = 10.0
MAX_WAITING = 10_000
"""Cancelled samples that wait to be told of; more are drawn for nobody, which they were before servers had this."""
ONCE = RetryConfig(enable_retry_logic=False)


class SampleCanceller:
    """Those of one connection. Used on the loop thread; nothing here fails or holds up anything."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: deque[str] = deque()
        self._max_at_once: int | None = None
        """None while that is not known; 0: the server does not want to be told."""
        self._tellers = 0

    def add(self, request_id: str) -> None:
        """Nobody waits for this sample any longer."""
        if self._connection.closed or self._max_at_once == 0 or len(self._waiting) >= MAX_WAITING:
            return
        self._waiting.append(request_id)
        self._start_telling()

    def _start_telling(self) -> None:
        """Have as many tellers as the server wants, of those that have something to tell; one until that is known."""
        if self._waiting and self._tellers < (self._max_at_once or 1):
            self._tellers += 1
            self._connection.operations.spawn(self._tell_all())

    async def _tell_all(self) -> None:
        try:
            if self._max_at_once is None:
                self._max_at_once = await self._ask()
            if self._max_at_once == 0:
                self._waiting.clear()
            while self._waiting:
                request_id = self._waiting.popleft()
                self._start_telling()
                await self._tell(request_id)
        finally:
            self._tellers -= 1

    async def _ask(self) -> int:
        """How many cancellations the server takes at once; 0 where it takes none. It is asked once."""
        try:
            dialect = await self._connection.dialect()
            if not (
                dialect.may_have_operation("client_dynamic_config") and dialect.may_have_operation("cancel_future")
            ):
                return 0
            call = client_dynamic_config(body=ClientConfigRequest(sdk_version=dialect.ceiling))
            config = await self._connection.call(call, Traffic.SESSION, retry=ONCE, timeout_s=CANCEL_TIMEOUT_S)
        except (TinkerError, ValueError) as error:
            log.debug("samples are not cancelled on the server, which does not say that it wants that: %s", error)
            return 0
        return max(1, config.sample_cancel_max_batch_size) if config.sample_cancel_enabled else 0

    async def _tell(self, request_id: str) -> None:
        call = cancel_future(body=CancelFutureRequest(request_id=request_id))
        try:
            await self._connection.call(call, Traffic.SAMPLING_FUTURES, retry=ONCE, timeout_s=CANCEL_TIMEOUT_S)
        except TinkerError as error:
            log.debug("the sample %s could not be cancelled on the server: %s", request_id, error)
