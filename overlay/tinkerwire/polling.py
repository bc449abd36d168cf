"""From a promise (a request id) to its result: asks the server until there is one, or a deadline passes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs
import orjson

from tinkerwire_base.call import WireRequest, WireResponse, error_of, response_info
from tinkerwire_base.errors import (
    APIConnectionError,
    APIResponseValidationError,
    APIStatusError,
    FutureExpiredError,
    InternalServerError,
    RateLimitError,
    RequestErrorCategory,
    RequestFailedError,
    RequestInfo,
    RequestTimeoutError,
    TinkerError,
)
from tinkerwire_generated.api.futures import retrieve_future
from tinkerwire_generated.models import FutureRetrieveRequest

from .backpressure import Traffic
from .connection import Connection, Submission
from .retry import RetryConfig, is_retryable, server_wish

T = TypeVar("T")
log = logging.getLogger("tinkerwire")

POLL_TIMEOUT_S = 60.0
"""Servers hold an unfinished future for up to 45 s and more before they answer 408."""
FAST_S = 1.0
"""An empty answer that comes faster than this was not held: wait before asking again."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0
BAD_REQUEST_RETRIES = 3
FIRST_WORD_S, WORD_EVERY_S = 10.0, 60.0


@attrs.frozen(kw_only=True)
class Waiting:
    """What a poll is waiting for, for logs and for callbacks."""

    request_type: str
    request_id: str
    waited_s: float
    queue_state: str
    reason: str


@attrs.frozen(kw_only=True)
class Promise(Generic[T]):
    """A future of the server: its id, and what comes out of it."""

    request_id: str
    request_type: str
    """``Sample``, ``ForwardBackward`` ...: what the server's metrics call it."""
    result_type: type[T]
    traffic: Traffic
    deadline_s: float
    """Seconds from now until RequestTimeoutError."""


class Poll(Generic[T]):
    """One promise being polled."""

    def __init__(
        self,
        connection: Connection,
        promise: Promise[T],
        policy: RetryConfig,
        on_wait: Callable[[Waiting], None] | None = None,
    ) -> None:
        self._connection = connection
        self._promise = promise
        self._policy = policy
        self._on_wait = on_wait
        self._started = time.monotonic()
        self._next_word = FIRST_WORD_S
        self._queue_state, self._reason = "active", ""
        self._pause = FIRST_PAUSE_S
        self._faults = 0
        self._faulty_since = 0.0
        self._bad_requests = 0
        self._value: Any = None

    async def result(self) -> T:
        """Poll until the result is there.

        Raises:
            RequestFailedError: the server reports that the request failed.
            RequestTimeoutError: the deadline passed.
            FutureExpiredError: the server does not have the future any more.
            APIError: the server cannot be asked.
        """
        iteration = 0
        while True:
            asked = time.monotonic()
            left = self._promise.deadline_s - (asked - self._started)
            if left <= 0:
                raise self._too_late()
            request = self._request(iteration)
            iteration += 1
            try:
                answer = await self._connection.exchange(request, self._promise.traffic, min(POLL_TIMEOUT_S, left + 1))
            except APIConnectionError as fault:
                await self._sleep(self._wait_after(fault))
                continue
            wait = self._read(answer, asked)
            if wait is None:
                return self._finish(answer)
            await self._sleep(wait)

    def _request(self, iteration: int) -> WireRequest:
        body = FutureRetrieveRequest(request_id=self._promise.request_id)
        headers = {
            "x-tinker-request-type": self._promise.request_type,
            "x-tinker-request-iteration": str(iteration),
        }
        return self._connection.encode(
            retrieve_future(body=body), Submission(key=self._promise.request_id, headers=headers)
        )

    def _read(self, answer: WireResponse, asked: float) -> float | None:
        """What an answer means: None for a final one, else the wait before the next question."""
        if answer.status == 408:
            return self._not_ready(_json(answer), asked)
        if answer.status >= 300:
            return self._wait_after(self._fault(answer))
        self._value = _json(answer)
        if isinstance(self._value, dict) and self._value.get("type") == "try_again":
            return self._not_ready(self._value, asked)
        return None

    def _not_ready(self, value: Any, asked: float) -> float:
        self._faults = self._bad_requests = 0
        if isinstance(value, dict):
            self._queue_state = str(value.get("queue_state") or "active")
            self._reason = str(value.get("queue_state_reason") or "")
        self._say()
        if time.monotonic() - asked >= FAST_S:
            self._pause = FIRST_PAUSE_S
            return 0.0
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE_S)
        return pause

    def _wait_after(self, fault: TinkerError) -> float:
        """The wait after a poll that brought a fault; raises it when waiting cannot help."""
        now = time.monotonic()
        if isinstance(fault, APIStatusError) and fault.status_code == 400:
            self._bad_requests += 1
            if self._bad_requests > BAD_REQUEST_RETRIES:
                raise fault
            return self._policy.delay(self._bad_requests)
        if not (isinstance(fault, APIConnectionError | RateLimitError | InternalServerError) or is_retryable(fault)):
            raise fault
        self._faults += 1
        if self._faults == 1:
            self._faulty_since = now
        elif now - self._faulty_since > self._policy.max_elapsed:
            raise fault
        self._say(fault)
        wished = server_wish(fault)
        return self._policy.delay(self._faults) if wished is None else min(wished, self._policy.retry_after_max)

    def _fault(self, answer: WireResponse) -> TinkerError:
        request = RequestInfo(method="POST", url=f"{self._connection.base_url}/api/v1/retrieve_future")
        promise = self._promise
        if answer.status == 410:
            return FutureExpiredError(
                f"{promise.request_type} {promise.request_id}: the server no longer has this future (HTTP 410): "
                f"{answer.content.decode('utf-8', 'replace')[:500]}",
                request_id=promise.request_id,
            )
        fault = error_of(request, response_info(answer), _json(answer))
        return fault if isinstance(fault, TinkerError) else TinkerError(str(fault))

    def _finish(self, answer: WireResponse) -> T:
        promise = self._promise
        value = self._value
        if value is None:
            raise self._misfit(answer, "it is null or not JSON")
        if isinstance(value, dict) and "error" in value:
            raise RequestFailedError(
                f"{promise.request_type} {promise.request_id} failed: {value['error']}",
                promise.request_id,
                RequestErrorCategory.read(value.get("category")),
            )
        try:
            found: T = self._connection.converter.structure(value, promise.result_type)
        except ValueError as fault:
            raise self._misfit(answer, str(fault)) from None
        return found

    def _misfit(self, answer: WireResponse, why: str) -> APIResponseValidationError:
        promise = self._promise
        return APIResponseValidationError(
            f"{promise.request_type} {promise.request_id}: the result does not fit the contract: {why}",
            response=response_info(answer),
        )

    async def _sleep(self, wait: float) -> None:
        left = self._promise.deadline_s - (time.monotonic() - self._started)
        if wait > 0:
            await asyncio.sleep(max(0.0, min(wait, left)))

    def _say(self, fault: TinkerError | None = None) -> None:
        """Nothing waits without a word: log what is waited for, at 10 s and then once a minute."""
        waited = time.monotonic() - self._started
        if waited < self._next_word:
            return
        self._next_word = waited + WORD_EVERY_S
        promise = self._promise
        reason = str(fault) if fault else self._reason
        log.warning(
            "%s %s: no result after %.0f s; queue %s%s",
            promise.request_type,
            promise.request_id,
            waited,
            self._queue_state,
            f": {reason}" if reason else "",
        )
        if self._on_wait is not None:
            self._on_wait(
                Waiting(
                    request_type=promise.request_type,
                    request_id=promise.request_id,
                    waited_s=waited,
                    queue_state=self._queue_state,
                    reason=reason,
                )
            )

    def _too_late(self) -> RequestTimeoutError:
        promise = self._promise
        return RequestTimeoutError(
            f"{promise.request_type} {promise.request_id}: no result within {promise.deadline_s:g} s "
            f"(queue {self._queue_state}{': ' + self._reason if self._reason else ''}); the server may still be "
            "working on it; RetryConfig.progress_timeout sets this limit",
            request_id=promise.request_id,
        )


def _json(answer: WireResponse) -> Any:
    try:
        return orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return None
