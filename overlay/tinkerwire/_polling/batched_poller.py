"""Batched polling: one retrieve_futures request for all pending samples of a client, in place of a poll for each.

The batched poller only signals when a result can be fetched; the result itself is fetched as without it. If the server
does not support retrieve_futures, each sample is polled separately.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict

from tinkerwire_base.errors import BadRequestError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.futures import retrieve_futures

from .._connection.connection import Connection
from .._connection.retry import SINGLE_ATTEMPT, RetryConfig
from .._connection.retry_rules import MAX_BATCHED_POLL_RETRIES, Loop
from .._futures.timeout import wait_for
from .._transport.backpressure import Traffic
from .._wire.dialect import Dialect
from .poller import FIRST_PAUSE_S, MAX_PAUSE_S, MIN_HELD_S

BATCHED_POLL_TIMEOUT_S = 45.0
"""Timeout of one poll, as in the official SDK; servers hold it for about 30 s, and all samples wait for it."""
COMPLETION_SILENCE_S = 300.0
"""A sample without a completion for so long is polled separately: its completion may have been lost."""
ACK_AFTER_S = 1.0
"""The next poll acknowledges completions; without one, a request of its own does so after this time."""
ACK_TIMEOUT_S = 5.0
MAX_EARLY_COMPLETIONS = 10_000
"""Completions kept for samples that do not wait yet; nobody takes those of cancelled samples."""


class BatchedPoller:
    """Polls for all samples of one client in its sampling session. Used on the loop thread.

    Args:
        connection: the connection to the server.
        policy: the retry policy.
        sampling_session_id: the sampling session.
        copy_number: the client's number among the copies that share the sampling session.
        with_ids: True if requests name the samples whose results the client has fetched.
    """

    def __init__(
        self,
        connection: Connection,
        policy: RetryConfig,
        sampling_session_id: str,
        copy_number: int,
        *,
        with_ids: bool,
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._target = models.SamplingSessionFuturesTarget(
            sampling_session_id=sampling_session_id, cloned_sampler_id=copy_number
        )
        self._with_ids = with_ids
        self._waiters: dict[str, asyncio.Future[None]] = {}
        self._early_completions: OrderedDict[str, None] = OrderedDict()
        self._fetched: set[str] = set()
        self._cursor = self._acknowledged_cursor = 0
        self._has_new_waiter = asyncio.Event()
        self._polling: asyncio.Task[None] | None = None
        self.is_disabled = False
        self._pause = FIRST_PAUSE_S

    @classmethod
    def if_supported(
        cls, connection: Connection, dialect: Dialect, policy: RetryConfig, sampling_session_id: str, copy_number: int
    ) -> BatchedPoller | None:
        """Return a poller if the server's configuration requests batched polling; otherwise None."""
        if not (dialect.config.sample_use_retrieve_futures and dialect.may_have_operation("retrieve_futures")):
            return None
        with_ids = dialect.may_have_field("FuturesRetrieveRequest", "retrieved_request_ids")
        return cls(connection, policy, sampling_session_id, copy_number, with_ids=with_ids)

    async def wait_until_finished(self, request_id: str) -> None:
        """Wait until a sample is finished, or until it must be polled separately."""
        if self.is_disabled or request_id in self._early_completions:
            self._early_completions.pop(request_id, None)
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiters[request_id] = loop.create_future()
        timer = loop.call_later(COMPLETION_SILENCE_S, _wake, waiter)
        self._has_new_waiter.set()
        self._ensure_polling()
        try:
            await waiter
        finally:
            timer.cancel()
            del self._waiters[request_id]

    def mark_fetched(self, request_id: str) -> None:
        """Record that the client has the result or the error of a sample, or no longer waits for it."""
        if self._with_ids and not self.is_disabled:
            self._fetched.add(request_id)
            self._ensure_polling()

    def _ensure_polling(self) -> None:
        if not self._connection.closed and (self._polling is None or self._polling.done()):
            self._polling = self._connection.operations.spawn(self._poll_while_needed())

    @property
    def _has_unacknowledged(self) -> bool:
        return bool(self._fetched) or self._cursor != self._acknowledged_cursor

    async def _poll_while_needed(self) -> None:
        try:
            while not self.is_disabled:
                if self._waiters:
                    await self._poll_with_retries()
                elif self._has_unacknowledged:
                    await self._acknowledge()
                else:
                    return
        except asyncio.CancelledError:
            if self._has_unacknowledged and not self.is_disabled:
                await self._poll(0.0, ACK_TIMEOUT_S / 2)
            raise
        except TinkerError as error:
            # Only an acknowledgement raises here; the next poll repeats the acknowledgement.
            text = "acknowledging samples failed; the next poll acknowledges them again: %s"
            self._connection.throttled_log.warn("acknowledgement", text, error)

    async def _poll_with_retries(self) -> None:
        errors = 0
        while self._waiters:
            try:
                await self._poll(None, BATCHED_POLL_TIMEOUT_S)
            except TinkerError as error:
                errors += 1
                is_bad = isinstance(error, BadRequestError)
                if not is_bad and not self._policy.should_retry(error, Loop.BATCHED_POLL):
                    self.is_disabled = True
                max_retries = self._policy.find_rule(error, Loop.BATCHED_POLL).max_retries
                if self.is_disabled or errors > (max_retries or MAX_BATCHED_POLL_RETRIES):
                    text = "retrieve_futures: %s; each sample is polled separately"
                    self._connection.throttled_log.warn("retrieve_futures", text, error)
                    self.is_disabled = self.is_disabled or is_bad
                    self._wake_all()
                    # Let them remove themselves: without them, no other poll is needed.
                    await asyncio.sleep(0)
                    return
                await asyncio.sleep(self._policy.delay_after(error, errors))
            else:
                return

    async def _acknowledge(self) -> None:
        self._has_new_waiter.clear()
        try:
            await wait_for(self._has_new_waiter.wait(), ACK_AFTER_S)
        except asyncio.TimeoutError:
            await self._poll(0.0, ACK_TIMEOUT_S)

    async def _poll(self, long_poll_s: float | None, timeout_s: float) -> None:
        sent_at, fetched, cursor = time.monotonic(), sorted(self._fetched), self._cursor
        body = models.FuturesRetrieveRequest(
            target=self._target, prev_cursor=cursor, timeout=long_poll_s, retrieved_request_ids=fetched
        )
        call = retrieve_futures(body=body)
        response = await self._connection.call(
            call, Traffic.SAMPLING_FUTURES, retry=SINGLE_ATTEMPT, timeout_s=timeout_s
        )
        self._fetched.difference_update(fetched)
        self._acknowledged_cursor, self._cursor = cursor, response.cursor
        for completion in response.completions:
            waiter = self._waiters.get(completion.request_id)
            if waiter is not None:
                _wake(waiter)
            else:
                self._early_completions[completion.request_id] = None
                if len(self._early_completions) > MAX_EARLY_COMPLETIONS:
                    self._early_completions.popitem(last=False)
        if response.completions or time.monotonic() - sent_at >= MIN_HELD_S:
            self._pause = FIRST_PAUSE_S
        elif long_poll_s is None:
            await asyncio.sleep(self._pause)
            self._pause = min(self._pause * 2, MAX_PAUSE_S)
        # Let finished waiters remove themselves before the next poll.
        await asyncio.sleep(0)

    def _wake_all(self) -> None:
        for waiter in self._waiters.values():
            _wake(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
