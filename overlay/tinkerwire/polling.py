"""From a promise (a request id) to its result: asks the server until there is one, or a deadline passes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs

from tinkerwire_base.call import WireRequest, WireResponse, default_converter, error_of, response_info
from tinkerwire_base.converter import parse_json
from tinkerwire_base.errors import (
    APIConnectionError,
    APIResponseValidationError,
    BadRequestError,
    FutureExpiredError,
    RequestErrorCategory,
    RequestFailedError,
    RequestInfo,
    RequestTimeoutError,
    TinkerError,
)
from tinkerwire_generated.api.futures import retrieve_future
from tinkerwire_generated.models import FutureRetrieveRequest

from . import bodies
from .backpressure import Traffic
from .connection import FIRST_WORD_S, Connection, Submission
from .retry import RetryConfig, is_retryable
from .tracking import OnWait, Waiting, current

T = TypeVar("T")
log = logging.getLogger("tinkerwire")

POLL_TIMEOUT_S = 60.0
"""Servers hold an unfinished future for up to 45 s and more before they answer 408."""
FAST_S = 1.0
"""An empty answer that comes faster than this was not held: wait before asking again."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0
BAD_REQUEST_RETRIES = 3
POLLED_STATUSES = frozenset({429})
"""User errors that may pass; a 409 does not, as some servers report failed requests by it."""
FAILURE_KEYS = ("error", "detail")
"""Either of them makes an answer of status 200 the report of a failure; servers differ."""
WORD_EVERY_S = 60.0


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
    in_place_of_null: Mapping[str, Any] = attrs.field(factory=dict)
    """Values for keys of the result that some servers leave out or send as null."""


class Poll(Generic[T]):
    """One promise being polled.

    ``ready`` waits until the first poll is worth its while; without it, that is at once. ``on_wait`` hears of long
    waits in place of the client's own listener.
    """

    def __init__(
        self,
        connection: Connection,
        promise: Promise[T],
        policy: RetryConfig,
        on_wait: OnWait | None = None,
        ready: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._connection = connection
        self._promise = promise
        self._policy = policy
        self._on_wait = on_wait or connection.on_wait
        self._track = current()
        self._ready = ready
        self._started = time.monotonic()
        self._pause = FIRST_PAUSE_S
        self._faults = 0
        self._faulty_since = 0.0
        self._bad_requests = 0
        self._word: asyncio.TimerHandle | None = None

    async def result(self) -> T:
        """Poll until the result is there.

        Raises:
            RequestFailedError: the server reports that the request failed.
            RequestTimeoutError: the deadline passed.
            FutureExpiredError: the server does not have the future any more.
            APIError: the server cannot be asked.
        """
        self._word = asyncio.get_running_loop().call_later(FIRST_WORD_S, self._say)
        self._track.submitted(self._promise.request_type, self._promise.request_id)
        try:
            found = await asyncio.wait_for(self._ask_until_done(), self._promise.deadline_s)
            self._track.done += 1
            return found
        except TinkerError:
            raise
        except asyncio.TimeoutError:
            raise self._too_late() from None
        finally:
            self._word.cancel()

    async def _ask_until_done(self) -> T:
        iteration = 0
        if self._ready is not None:
            await self._ready(self._promise.request_id)
        while True:
            asked = time.monotonic()
            request = await self._request(iteration)
            iteration += 1
            try:
                answer = await self._connection.exchange(request, self._promise.traffic, POLL_TIMEOUT_S)
            except APIConnectionError as fault:
                wait = self._wait_after(fault)
            else:
                if bodies.is_binary(answer) and answer.status < 300:
                    return self._finish_binary(answer)
                value = _json(answer)
                if _is_final(answer, value):
                    return self._finish(answer, value)
                if answer.status == 408 or answer.status < 300:
                    wait = self._wait_for_more(value, asked)
                else:
                    wait = self._wait_after(self._fault(answer, value))
            await asyncio.sleep(wait)

    async def _request(self, iteration: int) -> WireRequest:
        dialect = await self._connection.dialect()
        headers = {
            "accept": dialect.accept(self._promise.result_type),
            "x-tinker-request-type": self._promise.request_type,
            "x-tinker-request-iteration": str(iteration),
        }
        # Every poll has a key of its own: a server that goes by keys would else repeat its first "not yet".
        body = FutureRetrieveRequest(request_id=self._promise.request_id)
        return self._connection.encode(retrieve_future(body=body), Submission(headers=headers), dialect)

    def _wait_for_more(self, value: Any, asked: float) -> float:
        """The wait after a poll that brought no result yet."""
        self._faults = self._bad_requests = 0
        self._track.reason = ""
        if isinstance(value, dict):
            self._track.queue_state = str(value.get("queue_state") or "active")
            self._track.reason = str(value.get("queue_state_reason") or "")
        if time.monotonic() - asked >= FAST_S:
            self._pause = FIRST_PAUSE_S
            return 0.0
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE_S)
        return pause

    def _wait_after(self, fault: TinkerError) -> float:
        """The wait after a poll that brought a fault; raises it when waiting cannot help."""
        now = time.monotonic()
        self._track.reason = str(fault)
        if isinstance(fault, BadRequestError):
            self._bad_requests += 1
            if self._bad_requests > BAD_REQUEST_RETRIES:
                raise fault
            return self._policy.wait_after(fault, self._bad_requests)
        if not is_retryable(fault, POLLED_STATUSES):
            raise fault
        self._faults += 1
        if self._faults == 1:
            self._faulty_since = now
        elif now - self._faulty_since > self._policy.max_elapsed:
            raise fault
        return self._policy.wait_after(fault, self._faults)

    def _fault(self, answer: WireResponse, value: Any) -> TinkerError:
        request = RequestInfo(method="POST", url=f"{self._connection.base_url}/api/v1/retrieve_future")
        promise = self._promise
        if answer.status == 410:
            return FutureExpiredError(
                f"{promise.request_type} {promise.request_id}: the server no longer has this future (HTTP 410): "
                f"{answer.content.decode('utf-8', 'replace')[:500]}",
                request_id=promise.request_id,
            )
        fault = error_of(request, response_info(answer), value)
        return fault if isinstance(fault, TinkerError) else TinkerError(str(fault))

    def _finish(self, answer: WireResponse, value: Any) -> T:
        promise = self._promise
        if value is None:
            raise self._misfit(answer, "it is null or not JSON")
        if isinstance(value, dict) and (key := next((key for key in FAILURE_KEYS if key in value), None)):
            raise RequestFailedError(
                f"{promise.request_type} {promise.request_id} failed: {value[key]}",
                promise.request_id,
                RequestErrorCategory.read(value.get("category")),
            )
        if isinstance(value, dict):
            value.update({key: item for key, item in promise.in_place_of_null.items() if value.get(key) is None})
        try:
            found: T = default_converter().structure(value, promise.result_type)
        except ValueError as fault:
            raise self._misfit(answer, str(fault)) from None
        return found

    def _finish_binary(self, answer: WireResponse) -> T:
        try:
            found: T = bodies.decode(answer.content, self._promise.result_type)
        except ValueError as fault:
            raise self._misfit(answer, str(fault)) from None
        return found

    def _misfit(self, answer: WireResponse, why: str) -> APIResponseValidationError:
        promise = self._promise
        return APIResponseValidationError(
            f"{promise.request_type} {promise.request_id}: the result does not fit the contract: {why}",
            response=response_info(answer),
        )

    def _say(self) -> None:
        """Nothing waits without a word: log what is waited for, at 10 s and then once a minute."""
        self._word = asyncio.get_running_loop().call_later(WORD_EVERY_S, self._say)
        waiting = Waiting(
            request_type=self._promise.request_type,
            request_id=self._promise.request_id,
            waited_s=time.monotonic() - self._started,
            queue_state=self._track.queue_state,
            reason=self._track.reason,
        )
        self._connection.say(
            f"waiting {waiting.request_type}",
            "%s %s: no result after %.0f s; queue %s%s",
            waiting.request_type,
            waiting.request_id,
            waiting.waited_s,
            waiting.queue_state,
            f": {waiting.reason}" if waiting.reason else "",
        )
        if self._on_wait is not None:
            try:
                self._on_wait(waiting)
            except Exception:  # it is the user's, and takes nothing away from the result
                log.exception("on_wait failed for %s %s", waiting.request_type, waiting.request_id)

    def _too_late(self) -> RequestTimeoutError:
        promise, track = self._promise, self._track
        return RequestTimeoutError(
            f"{promise.request_type} {promise.request_id}: no result within {promise.deadline_s:g} s "
            f"(queue {track.queue_state}{': ' + track.reason if track.reason else ''}); the server may still be "
            "working on it; RetryConfig.progress_timeout sets this limit",
            request_id=promise.request_id,
        )


def _is_final(answer: WireResponse, value: Any) -> bool:
    """Whether it is the result, and not word that there is none yet, or only how large it is."""
    is_word = isinstance(value, dict) and (
        value.get("type") == "try_again" or value.get("status") == "complete_metadata"
    )
    return answer.status < 300 and not is_word


def _json(answer: WireResponse) -> Any:
    try:
        return parse_json(answer.content)
    except ValueError:
        return None
