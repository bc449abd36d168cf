"""Polling: request the result of one future until the server gives it, or until waiting cannot help."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from tinkerwire_base.call import PROTOBUF, WireRequest, WireResponse, error_of, response_info
from tinkerwire_base.errors import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    FutureExpiredError,
    InternalServerError,
    NotFoundError,
    RequestInfo,
    RequestTimeoutError,
    TinkerError,
)
from tinkerwire_generated import models
from tinkerwire_generated.api.futures import retrieve_future

from .._connection.connection import Connection
from .._connection.retry import RetryConfig
from .._connection.retry_rules import Loop
from .._connection.session_loss import names_missing_thing
from .._futures.deadline import deadline_error, is_deadline_passed, remaining_s
from .._futures.operation_record import current_operation
from .._futures.operation_trace import error_name, state_name
from .._transport.backpressure import Traffic
from .._wire.codec import load_decoder
from .._wire.server_futures import DeferredResult, ImmediateResult
from .pending_result import PendingResult
from .result_reader import is_final, parse_body, read_result

T = TypeVar("T")

POLL_TIMEOUT_S = 60.0
"""Timeout of one poll; servers hold an unfinished future for 45 s and more before they return 408."""
MIN_HELD_S = 1.0
"""The server did not hold a poll that returns faster than this without a result: pause before the next poll."""
FIRST_PAUSE_S, MAX_PAUSE_S = 0.02, 1.0
PROTOBUF_REJECTED_STATUSES = frozenset({406, 415})
"""Statuses of servers that give no result while the client accepts protobuf."""
SESSION_FUTURES = frozenset({Traffic.TRAINING_FUTURES, Traffic.SAMPLING_FUTURES})
"""Polls for results of operations that belong to the session."""
FUTURES_OF = {Traffic.TRAINING: Traffic.TRAINING_FUTURES, Traffic.SAMPLING: Traffic.SAMPLING_FUTURES}


class Poller(Generic[T]):
    """Polls one future of the server until its result arrives.

    Args:
        connection: the connection to the server.
        pending: the future.
        policy: the retry policy.
        ready: waits until the first poll is worthwhile; None polls at once.
    """

    def __init__(
        self,
        connection: Connection,
        pending: PendingResult[T],
        policy: RetryConfig,
        ready: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._connection = connection
        self._pending = pending
        self._policy = policy
        self._record = current_operation()
        self._trace = self._record.trace
        self._number = 0 if self._trace is None else self._trace.sends
        """Number of the request whose result this is."""
        self._ready = ready
        self._pause = FIRST_PAUSE_S
        self._sent_at = 0.0
        self._errors = 0
        self._failing_since = 0.0
        self._bad_requests = 0
        self._was_accepted = False
        """True once the server has shown that it has, or had, the future."""
        self._is_sample = pending.traffic is Traffic.SAMPLING_FUTURES
        self._belongs_to_session = pending.traffic in SESSION_FUTURES
        self._session_id = connection.session_state.id

    async def result(self) -> T:
        """Poll until the result arrives.

        Raises:
            RequestFailedError: the server reports that the request failed.
            FutureExpiredError: the server no longer has the future.
            SessionExpiredError: the server no longer has the session, as after a restart.
            APIError: the polls themselves fail.
        """
        submission = self._pending.submission
        if isinstance(submission, ImmediateResult):
            result = self._read(submission.response, parse_body(submission.response), 0)  # its bytes are counted
            self._record.done += 1
            return result
        request_id = self._pending.request_id
        self._record.mark_submitted(self._pending.request_type, request_id)
        try:
            result = await self._poll_until_final()
            self._record.done += 1
            self._record.mark_finished(request_id)
            return result
        except RequestTimeoutError:
            raise
        except TinkerError:
            self._record.mark_finished(request_id)
            raise
        finally:
            self._record.stop_waiting(request_id)

    async def _poll_until_final(self) -> T:
        dialect = await self._connection.dialect()
        result_type = self._pending.result_type or object
        if PROTOBUF in dialect.accept(result_type):
            # Before the first result is ready, as the results after it would wait.
            load_decoder(result_type)
        if self._ready is not None:
            await self._ready(self._pending.request_id)
        if not self._is_sample:
            return await self._poll_repeatedly()
        self._connection.poll_pace.polling += 1
        try:
            return await self._poll_repeatedly()
        finally:
            self._connection.poll_pace.polling -= 1

    async def _poll_repeatedly(self) -> T:
        iteration = 0
        session_state = self._connection.session_state
        while True:
            is_expired = self._belongs_to_session and session_state.is_session_expired(self._session_id)
            request = await self._request(iteration)
            iteration += 1
            if self._trace is not None:
                self._trace.add_repeated("poll", self._number, len(request.content or b""))
            try:
                response = await self._exchange(request)
            except APITimeoutError as error:
                if is_deadline_passed():
                    raise deadline_error() from error
                # Some servers hold a poll for longer than the timeout; a response to another request shows that the
                # server is up.
                is_held = (self._connection.last_response_at or 0.0) > self._sent_at
                wait = self._delay_unfinished(None) if is_held else self._delay_after(error)
            except APIConnectionError as error:
                wait = self._delay_after(error)
            else:
                if response.status in PROTOBUF_REJECTED_STATUSES and PROTOBUF in request.headers["accept"]:
                    self._connection.dialects.learn_json_results()
                    continue
                body = parse_body(response)
                if is_final(response, body):
                    return self._read(response, body, len(response.content))
                if response.status == 408 or response.status < 300:
                    if is_expired:
                        reason = f"the response has no result of {self._pending.name}"
                        raise session_state.expired_error(reason, self._session_id)
                    wait = self._delay_unfinished(body)
                    if self._trace is not None:
                        state = state_name(self._record.queue_state)
                        self._trace.add_repeated("unready", self._number, state, len(response.content))
                else:
                    wait = await self._delay_after_status(response)
            await asyncio.sleep(min(wait, max(0.0, remaining_s())))

    async def _exchange(self, request: WireRequest) -> WireResponse:
        """Send a poll; if the server does not hold polls for samples, in its turn."""
        connection = self._connection
        if not self._is_sample or connection.poll_connections.are_held:
            self._sent_at = time.monotonic()
            return await connection.exchange(request, self._pending.traffic, POLL_TIMEOUT_S)
        async with connection.poll_pace.turn():
            self._sent_at = time.monotonic()
            return await connection.exchange(request, self._pending.traffic, POLL_TIMEOUT_S)

    def _read(self, response: WireResponse, body: Any, size: int) -> T:
        if self._trace is not None:
            self._trace.add("ready", self._number, size)
        result = read_result(self._pending, response, body)
        if self._trace is not None:
            self._trace.add("decoded", self._number)
        return result

    async def _request(self, iteration: int) -> WireRequest:
        dialect = await self._connection.dialect()
        headers = {
            "accept": dialect.accept(self._pending.result_type or object),
            "x-tinker-request-type": self._pending.request_type,
            "x-tinker-request-iteration": str(iteration),
        }
        # Every poll has its own idempotency key: otherwise a server that honours keys would repeat its first "not yet".
        body = models.FutureRetrieveRequest(request_id=self._pending.request_id)
        return self._connection.codec.encode(retrieve_future(body=body), dialect, headers)

    def _delay_unfinished(self, body: Any) -> float:
        """Return the wait after a poll whose result is not finished."""
        self._errors = self._bad_requests = 0
        self._was_accepted = True
        self._record.reason = ""
        if isinstance(body, dict):
            self._record.queue_state = str(body.get("queue_state") or "active")
            self._record.reason = str(body.get("queue_state_reason") or "")
        took_s, pace = time.monotonic() - self._sent_at, self._connection.poll_pace
        was_held = took_s >= MIN_HELD_S
        min_pause, max_pause = 0.0, MAX_PAUSE_S
        if self._is_sample:
            was_held = was_held and not pace.is_slow(took_s)
            self._connection.poll_connections.observe(was_held=was_held)
            min_pause, max_pause = pace.min_pause, pace.max_pause
        if was_held:
            self._pause = FIRST_PAUSE_S
            return 0.0
        pause, self._pause = self._pause, min(self._pause * 2, MAX_PAUSE_S)
        return max(min(pause, max_pause), min_pause)

    async def _delay_after_status(self, response: WireResponse) -> float:
        """Return the wait after an error response, or raise the error when waiting cannot help."""
        request = RequestInfo(method="POST", url=f"{self._connection.base_url}/api/v1/retrieve_future")
        status_error = error_of(request, response_info(response))
        is_gone = response.status == 410
        try:
            return self._delay_after(self._expired_error(status_error) if is_gone else status_error)
        except TinkerError as error:
            session_state = self._connection.session_state
            if self._belongs_to_session and await session_state.is_lost(status_error, self._session_id):
                raise session_state.expired_error(str(error), self._session_id) from error
            raise

    def _delay_after(self, error: TinkerError) -> float:
        """Return the wait after a poll that met an error, or raise the error when waiting cannot help."""
        now = time.monotonic()
        self._record.reason = str(error)
        if self._trace is not None:
            self._trace.add_repeated("poll_error", self._number, error_name(error))
        if error.may_have_been_sent or isinstance(error, InternalServerError):
            # The server may have given the result, and this response is all that arrived.
            self._was_accepted = True
        max_retries = self._policy.find_rule(error, Loop.POLL).max_retries
        if max_retries is not None and self._policy.user_decision(error) is None:
            self._bad_requests += 1
            if self._bad_requests > max_retries:
                raise error
            return self._policy.delay_after(error, self._bad_requests)
        if not self._policy.should_retry(error, Loop.POLL):
            if isinstance(error, NotFoundError) and (
                self._was_accepted or (self._pending.is_repeatable and names_missing_thing(error))
            ):
                raise self._expired_error(error) from error
            raise error
        self._errors += 1
        if self._errors == 1:
            self._failing_since = now
        elif now - self._failing_since > self._policy.max_elapsed:
            raise error
        return self._policy.delay_after(error, self._errors)

    def _expired_error(self, error: APIStatusError) -> FutureExpiredError:
        pending = self._pending
        return FutureExpiredError(
            f"{pending.name}: the server no longer has this future "
            f"(HTTP {error.status_code}): {error.response.text[:500]}",
            request_id=pending.request_id,
        )


async def fetch_result(connection: Connection, deferred: DeferredResult, traffic: Traffic, policy: RetryConfig) -> Any:
    """Return the value of an operation to which the server responded with a future.

    Raises:
        TinkerError: as for :meth:`Poller.result`.
    """
    pending: PendingResult[Any] = PendingResult(
        submission=models.UntypedAPIFuture(request_id=deferred.request_id),
        request_type=deferred.request_type,
        result_type=deferred.result_type,
        traffic=FUTURES_OF.get(traffic, traffic),
    )
    return await Poller(connection, pending, policy).result()
