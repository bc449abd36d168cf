"""From a promise (a request id) to its result: asks the server until there is one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar, cast

import attrs

from tinkerwire_base.call import PROTOBUF, WireRequest, WireResponse, default_converter, error_of, response_info
from tinkerwire_base.conversion.converter import parse_json
from tinkerwire_base.errors import (
    APIConnectionError,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
    FutureExpiredError,
    InternalServerError,
    NotFoundError,
    RequestErrorCategory,
    RequestFailedError,
    RequestInfo,
    RequestTimeoutError,
    TinkerError,
)
from tinkerwire_generated.api.futures import retrieve_future
from tinkerwire_generated.models import FutureRetrieveRequest, UntypedAPIFuture

from .._connection.connection import Connection
from .._connection.retry import RetryConfig
from .._connection.retry_rules import Loop
from .._connection.session_loss import names_missing_thing
from .._futures.deadline import deadline_error, is_deadline_passed, remaining_s
from .._futures.operation_record import current_operation
from .._transport.backpressure import Traffic
from .._wire import codec
from .._wire.server_futures import DeferredResult, ImmediateResult, Submission

T = TypeVar("T")

POLL_TIMEOUT_S = 60.0
"""Servers hold an unfinished future for up to 45 s and more before they answer 408."""
FAST_S = 1.0
"""An empty answer that comes faster than this was not held: wait before asking again."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0
REFUSED_FORMS = frozenset({406, 415})
"""Statuses of servers that give no results while protobuf is asked for."""
SESSION_FUTURES = frozenset({Traffic.TRAINING_FUTURES, Traffic.SAMPLING_FUTURES})
"""Polls for results of operations that belong to the session."""
FUTURES_OF = {Traffic.TRAINING: Traffic.TRAINING_FUTURES, Traffic.SAMPLING: Traffic.SAMPLING_FUTURES}
FAILURE_KEYS = ("error", "detail")
"""Either of them makes an answer of status 200 the report of a failure; servers differ."""


@attrs.frozen(kw_only=True)
class PendingResult(Generic[T]):
    """A future of the server: its id, and what comes out of it."""

    submission: Submission
    """The response to the operation, which may already have the result."""
    request_type: str
    """``Sample``, ``ForwardBackward`` ...: what the server's metrics call it."""
    result_type: type[T] | None
    """None for a result without content."""
    traffic: Traffic
    is_repeatable: bool = False
    """True if the caller requests another result when the server has lost this one."""
    null_defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """Values for keys of the result that some servers leave out or send as null."""

    @property
    def request_id(self) -> str:
        """The id of the future; empty where the server has given the result already."""
        return "" if isinstance(self.submission, ImmediateResult) else self.submission.request_id

    @property
    def name(self) -> str:
        """The name of the request in error messages."""
        return f"{self.request_type} {self.request_id}".rstrip()


class Poll(Generic[T]):
    """One promise being polled.

    ``ready`` waits until the first poll is worth its while; without it, that is at once.
    """

    def __init__(
        self,
        connection: Connection,
        promise: PendingResult[T],
        policy: RetryConfig,
        ready: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._connection = connection
        self._promise = promise
        self._policy = policy
        self._track = current_operation()
        self._ready = ready
        self._pause = FIRST_PAUSE_S
        self._faults = 0
        self._faulty_since = 0.0
        self._bad_requests = 0
        self._was_known = False
        self._is_of_session = promise.traffic in SESSION_FUTURES

    async def result(self) -> T:
        """Poll until the result is there.

        Raises:
            RequestFailedError: the server reports that the request failed.
            FutureExpiredError: the server does not have the future any more.
            SessionExpiredError: the server does not have the session any more, as after a restart.
            APIError: the server cannot be asked.
        """
        submission = self._promise.submission
        if isinstance(submission, ImmediateResult):
            result = self._read(submission.response)
            self._track.done += 1
            return result
        self._track.mark_submitted(self._promise.request_type, self._promise.request_id)
        try:
            found = await self._ask_until_done()
            self._track.done += 1
            self._track.mark_finished(self._promise.request_id)
            return found
        except RequestTimeoutError:
            raise
        except TinkerError:
            self._track.mark_finished(self._promise.request_id)
            raise
        finally:
            self._track.stop_waiting(self._promise.request_id)

    async def _ask_until_done(self) -> T:
        iteration = 0
        if self._ready is not None:
            await self._ready(self._promise.request_id)
        while True:
            asked, is_expired = time.monotonic(), self._is_of_session and self._connection.session_state.is_expired
            request = await self._request(iteration)
            iteration += 1
            try:
                answer = await self._connection.exchange(request, self._promise.traffic, POLL_TIMEOUT_S)
            except APITimeoutError as error:
                if is_deadline_passed():
                    raise deadline_error() from error
                # Some servers hold a question for longer than this; that they answer others shows that they live.
                is_held = (self._connection.last_response_at or 0.0) > asked
                wait = self._wait_for_more(None, asked) if is_held else self._delay_after(error)
            except APIConnectionError as error:
                wait = self._delay_after(error)
            else:
                if answer.status in REFUSED_FORMS and PROTOBUF in request.headers["accept"]:
                    self._connection.dialects.learn_json_results()
                    continue
                if codec.is_protobuf(answer) and answer.status < 300:
                    return self._finish_binary(answer)
                value = _json(answer)
                if _is_final(answer, value):
                    return self._finish(answer, value)
                if answer.status == 408 or answer.status < 300:
                    if is_expired:
                        reason = f"it gives no result of {self._promise.name}"
                        raise self._connection.session_state.expired_error(reason)
                    wait = self._wait_for_more(value, asked)
                else:
                    wait = await self._wait_after_status(answer, value)
            await asyncio.sleep(min(wait, max(0.0, remaining_s())))

    async def _request(self, iteration: int) -> WireRequest:
        dialect = await self._connection.dialect()
        headers = {
            "accept": dialect.accept(self._promise.result_type or object),
            "x-tinker-request-type": self._promise.request_type,
            "x-tinker-request-iteration": str(iteration),
        }
        # Every poll has a key of its own: a server that goes by keys would else repeat its first "not yet".
        body = FutureRetrieveRequest(request_id=self._promise.request_id)
        return self._connection.codec.encode(retrieve_future(body=body), dialect, headers)

    def _wait_for_more(self, value: Any, asked: float) -> float:
        """The wait after a poll that brought no result yet."""
        self._faults = self._bad_requests = 0
        self._was_known = True
        self._track.reason = ""
        if isinstance(value, dict):
            self._track.queue_state = str(value.get("queue_state") or "active")
            self._track.reason = str(value.get("queue_state_reason") or "")
        if time.monotonic() - asked >= FAST_S:
            self._pause = FIRST_PAUSE_S
            return 0.0
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE_S)
        return pause

    async def _wait_after_status(self, answer: WireResponse, value: Any) -> float:
        """Return the wait after an error response, or raise the error when waiting cannot help."""
        status_error = self._status_error(answer, value)
        is_gone = answer.status == 410
        try:
            return self._delay_after(self._lost(410, status_error.response.text) if is_gone else status_error)
        except TinkerError as error:
            if self._is_of_session and await self._connection.session_state.is_lost(status_error):
                raise self._connection.session_state.expired_error(str(error)) from error
            raise

    def _delay_after(self, error: TinkerError) -> float:
        """The wait after a poll that brought a fault; raises it when waiting cannot help."""
        now = time.monotonic()
        self._track.reason = str(error)
        if error.may_have_been_sent or isinstance(error, InternalServerError):
            # The server may have given the result, and this response is all that arrived.
            self._was_known = True
        max_retries = self._policy.find_rule(error, Loop.POLL).max_retries
        if max_retries is not None and self._policy.user_decision(error) is None:
            self._bad_requests += 1
            if self._bad_requests > max_retries:
                raise error
            return self._policy.delay_after(error, self._bad_requests)
        if not self._policy.should_retry(error, Loop.POLL):
            if isinstance(error, NotFoundError) and (
                self._was_known or (self._promise.is_repeatable and names_missing_thing(error))
            ):
                raise self._lost(404, error.response.text) from error
            raise error
        self._faults += 1
        if self._faults == 1:
            self._faulty_since = now
        elif now - self._faulty_since > self._policy.max_elapsed:
            raise error
        return self._policy.delay_after(error, self._faults)

    def _status_error(self, answer: WireResponse, value: Any) -> APIStatusError:
        request = RequestInfo(method="POST", url=f"{self._connection.base_url}/api/v1/retrieve_future")
        return error_of(request, response_info(answer), value)

    def _lost(self, status: int, text: str) -> FutureExpiredError:
        promise = self._promise
        return FutureExpiredError(
            f"{promise.name}: the server no longer has this future (HTTP {status}): {text[:500]}",
            request_id=promise.request_id,
        )

    def _read(self, answer: WireResponse) -> T:
        """Return the result that a response has."""
        return self._finish_binary(answer) if codec.is_protobuf(answer) else self._finish(answer, _json(answer))

    def _finish(self, answer: WireResponse, value: Any) -> T:
        promise = self._promise
        if value is None and promise.result_type is not None:
            raise self._misfit(answer, "it is null or not JSON")
        if isinstance(value, dict) and (key := next((key for key in FAILURE_KEYS if key in value), None)):
            raise RequestFailedError(
                f"{promise.name} failed: {value[key]}",
                promise.request_id,
                RequestErrorCategory.read(value.get("category")),
            )
        if isinstance(value, dict):
            value.update({key: item for key, item in promise.null_defaults.items() if value.get(key) is None})
        if promise.result_type is None:
            return cast(T, None)
        try:
            found: T = default_converter().structure(value, promise.result_type)
        except ValueError as error:
            raise self._misfit(answer, str(error)) from None
        return found

    def _finish_binary(self, answer: WireResponse) -> T:
        try:
            found: T = codec.decode(answer.content, self._promise.result_type or object)
        except ValueError as error:
            raise self._misfit(answer, str(error)) from None
        return found

    def _misfit(self, answer: WireResponse, why: str) -> APIResponseValidationError:
        promise = self._promise
        return APIResponseValidationError(
            response_info(answer),
            message=f"{promise.name}: the result does not fit the contract: {why}",
        )


async def fetch_result(connection: Connection, deferred: DeferredResult, traffic: Traffic, policy: RetryConfig) -> Any:
    """Return the value of an operation that the server answered with a future; errors as for :meth:`Poll.result`."""
    promise: PendingResult[Any] = PendingResult(
        submission=UntypedAPIFuture(request_id=deferred.request_id),
        request_type=deferred.request_type,
        result_type=deferred.result_type,
        traffic=FUTURES_OF.get(traffic, traffic),
    )
    return await Poll(connection, promise, policy).result()


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
