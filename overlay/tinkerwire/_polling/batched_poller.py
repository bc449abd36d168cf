"""Which samples of a client have ended: one question for all of them, in place of one for each.

It says only when to fetch a result, which is done as ever. A server that cannot be asked so costs nothing but that:
every sample then asks for itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict

from tinkerwire_base.errors import BadRequestError, TinkerError
from tinkerwire_generated.api.futures import retrieve_futures
from tinkerwire_generated.models import FuturesRetrieveRequest, SamplingSessionFuturesTarget

from .._connection.connection import Connection
from .._connection.retry import RetryConfig
from .._connection.retry_rules import MAX_BATCHED_POLL_RETRIES, Loop
from .._futures.timeout import wait_for
from .._transport.backpressure import Traffic
from .._wire.dialect import Dialect
from .poller import FAST_S, FIRST_PAUSE_S, LONGEST_PAUSE_S, POLL_TIMEOUT_S

UNHEARD_S = 300.0
"""A sample of which nothing was heard for so long asks for itself: its word may have been lost."""
ACK_AFTER_S = 1.0
"""What was heard is acknowledged by the next question, or after this time without one."""
ACK_TIMEOUT_S = 5.0
MAX_EARLY = 10_000
"""Ended samples kept for who asks later; those of samples that were cancelled are never asked for."""
ONCE = RetryConfig(enable_retry_logic=False)


class BatchedPoller:
    """The samples of one client, that of ``clone_id``, in its sampling session. Used on the loop thread."""

    def __init__(
        self, connection: Connection, policy: RetryConfig, sampling_session_id: str, clone_id: int, *, with_ids: bool
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._target = SamplingSessionFuturesTarget(sampling_session_id=sampling_session_id, cloned_sampler_id=clone_id)
        self._with_ids = with_ids
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._early: OrderedDict[str, None] = OrderedDict()
        self._fetched: set[str] = set()
        self._cursor = self._acknowledged = 0
        self._wanted = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self._is_off = False
        self._pause = FIRST_PAUSE_S

    @classmethod
    def where_wanted(
        cls, connection: Connection, dialect: Dialect, policy: RetryConfig, sampling_session_id: str, clone_id: int
    ) -> BatchedPoller | None:
        """Those of a client whose server wants to be asked so; None elsewhere."""
        if not (dialect.config.sample_use_retrieve_futures and dialect.may_have_operation("retrieve_futures")):
            return None
        with_ids = dialect.may_have_field("FuturesRetrieveRequest", "retrieved_request_ids")
        return cls(connection, policy, sampling_session_id, clone_id, with_ids=with_ids)

    async def ended(self, request_id: str) -> None:
        """Wait until it is time to fetch a sample: it has ended, or nobody can tell."""
        if self._is_off or request_id in self._early:
            self._early.pop(request_id, None)
            return
        loop = asyncio.get_running_loop()
        end = self._waiting[request_id] = loop.create_future()
        timer = loop.call_later(UNHEARD_S, _tell, end)
        self._wanted.set()
        self._go_on()
        try:
            await end
        finally:
            timer.cancel()
            del self._waiting[request_id]

    def fetched(self, request_id: str) -> None:
        """Note that the result of a sample, or its failure, has arrived, or that nobody waits for it any longer."""
        if self._with_ids and not self._is_off:
            self._fetched.add(request_id)
            self._go_on()

    def _go_on(self) -> None:
        if not self._connection.closed and (self._asking is None or self._asking.done()):
            self._asking = self._connection.operations.spawn(self._ask_while_wanted())

    @property
    def _has_news(self) -> bool:
        """Whether the server does not know all that has arrived."""
        return bool(self._fetched) or self._cursor != self._acknowledged

    async def _ask_while_wanted(self) -> None:
        try:
            while not self._is_off:
                if self._waiting:
                    await self._ask_in_spite_of_faults()
                elif self._has_news:
                    await self._acknowledge()
                else:
                    return
        except asyncio.CancelledError:
            if self._has_news and not self._is_off:
                await self._ask(0.0, ACK_TIMEOUT_S / 2)
            raise
        except TinkerError as error:
            # Of an acknowledgement alone: the next question carries it.
            text = "acknowledging samples failed; the next poll acknowledges them again: %s"
            self._connection.throttled_log.warn("acknowledgement", text, error)

    async def _ask_in_spite_of_faults(self) -> None:
        faults = 0
        while self._waiting:
            try:
                await self._ask(None, POLL_TIMEOUT_S)
            except TinkerError as error:
                faults += 1
                is_bad = isinstance(error, BadRequestError)
                if not is_bad and not self._policy.should_retry(error, Loop.BATCHED_POLL):
                    self._is_off = True
                max_retries = self._policy.find_rule(error, Loop.BATCHED_POLL).max_retries
                if self._is_off or faults > (max_retries or MAX_BATCHED_POLL_RETRIES):
                    text = "retrieve_futures: %s; each sample is asked for by itself"
                    self._connection.throttled_log.warn("retrieve_futures", text, error)
                    self._is_off = self._is_off or is_bad
                    self._tell_all()
                    return
                await asyncio.sleep(self._policy.delay_after(error, faults))
            else:
                return

    async def _acknowledge(self) -> None:
        self._wanted.clear()
        try:
            await wait_for(self._wanted.wait(), ACK_AFTER_S)
        except asyncio.TimeoutError:
            await self._ask(0.0, ACK_TIMEOUT_S)

    async def _ask(self, long_poll_s: float | None, timeout_s: float) -> None:
        asked, ids, cursor = time.monotonic(), sorted(self._fetched), self._cursor
        body = FuturesRetrieveRequest(
            target=self._target, prev_cursor=cursor, timeout=long_poll_s, retrieved_request_ids=ids
        )
        call = retrieve_futures(body=body)
        answer = await self._connection.call(call, Traffic.SAMPLING_FUTURES, retry=ONCE, timeout_s=timeout_s)
        self._fetched.difference_update(ids)
        self._acknowledged, self._cursor = cursor, answer.cursor
        for completion in answer.completions:
            end = self._waiting.get(completion.request_id)
            if end is not None:
                _tell(end)
            else:
                self._early[completion.request_id] = None
                if len(self._early) > MAX_EARLY:
                    self._early.popitem(last=False)
        if answer.completions or time.monotonic() - asked >= FAST_S:
            self._pause = FIRST_PAUSE_S
        elif long_poll_s is None:
            await asyncio.sleep(self._pause)
            self._pause = min(self._pause * 2, LONGEST_PAUSE_S)
        # Who was told takes itself off the list before it is asked for again.
        await asyncio.sleep(0)

    def _tell_all(self) -> None:
        for end in self._waiting.values():
            _tell(end)


def _tell(end: asyncio.Future[None]) -> None:
    if not end.done():
        end.set_result(None)
