"""The retry loop of requests: the same bytes under the same idempotency key, unless a caller replaces the request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, TinkerError

from .._credentials.redaction import Redaction
from .._futures.deadline import remaining_s
from .._futures.operation_record import current_operation
from .._futures.operation_trace import OperationTrace, error_name
from .._transport.backpressure import Traffic
from .._wire.server_futures import DeferredResult
from .build_recorder import SendAttempt
from .exchanger import Exchanger
from .retry import RepeatedErrors, RetryConfig
from .send_options import SendOptions, T
from .session_state import SessionState
from .throttled_log import ThrottledLog

FIRST_RESPONSE_BUDGET_S = 6.0
"""Time after which a server that no connection has reached is taken for a wrong address."""
FetchDeferred: TypeAlias = Callable[[DeferredResult, Traffic, RetryConfig], Coroutine[Any, Any, Any]]


class Sender:
    """Sends requests until they succeed or the retry policy gives up. Used on the loop thread.

    Args:
        base_url: the address of the server, for errors.
        exchanger: sends the attempts.
        session_state: the session of the requests.
        throttled_log: logs retries.
        redaction: removes secrets from errors.
        fetch_deferred: polls for a result that the server announces with a future.
    """

    def __init__(
        self,
        base_url: str,
        exchanger: Exchanger,
        session_state: SessionState,
        throttled_log: ThrottledLog,
        redaction: Redaction,
        fetch_deferred: FetchDeferred,
    ) -> None:
        self._base_url = base_url
        self._exchanger = exchanger
        self._session_state = session_state
        self._throttled_log = throttled_log
        self._redaction = redaction
        self._fetch_deferred = fetch_deferred

    async def send(
        self,
        request: WireRequest,
        read: Callable[[WireResponse], T],
        options: SendOptions[T],
        exchange: SendAttempt,
    ) -> T:
        """Send a request; see :meth:`Connection.send`. ``exchange`` sends one attempt.

        Raises:
            SessionExpiredError: the server no longer has the session of the request.
            TinkerError: the last attempt failed.
        """
        traffic, policy, session_id = options.traffic, options.policy, self._session_state.id
        if self._session_state.is_expired and self._session_state.is_used_by(traffic):
            raise self._session_state.expired_error("as the response to its heartbeat shows", session_id)
        started, attempt, record = time.monotonic(), 0, current_operation()
        trace, repeated = record.trace, RepeatedErrors(request.path)
        number = 0 if trace is None else trace.start_send()
        while True:
            attempt += 1
            attempt_started = time.monotonic()
            record.step = f"{request.method} {self._base_url}{request.path}: no response yet to attempt {attempt}"
            try:
                left_s = policy.time_limit - (attempt_started - started)
                if trace is not None:
                    trace.add("send", number, len(request.content or b""))
                response = await exchange(request, traffic, options.timeout_s, left_s)
                if trace is not None:
                    trace.add("response", number, response.status, len(response.content))
                result = read(response)
                record.step = ""
                return result
            except DeferredResult as deferred_result:
                deferred = deferred_result
                break
            except TinkerError as error:
                record.step = ""
                self._redaction.redact_error(error)
                self._exchanger.record_error(error)
                now = time.monotonic()
                replacement = None if options.replace is None else options.replace(error)
                if replacement is not None:
                    request, read = replacement.request, replacement.read
                    if replacement.is_due:
                        _report_retry(options, trace, number, error, 0.0)
                        continue
                    error = replacement.error
                is_permanent = repeated.is_permanent(error)
                wait = policy.wait_before_retry(error, attempt, now - started, is_permanent=is_permanent)
                # The next attempt likely takes as long as this one.
                next_end_s = now - started + (wait or 0.0) + now - attempt_started
                if (
                    wait is None
                    or (replacement is not None and replacement.is_hopeless)
                    or wait >= remaining_s()
                    or isinstance(error, options.raise_immediately)
                    or self._exceeds_first_response_budget(error, policy, next_end_s)
                ):
                    if await self._session_state.is_ended_by(error, traffic, options.raise_immediately, session_id):
                        raise self._session_state.expired_error(str(error), session_id) from error
                    raise error
                if attempt > 1 or self._exchanger.last_response_at is None:
                    self._throttled_log.warn("retry", "%s; attempt %d follows in %.1f s", error, attempt + 1, wait)
                _report_retry(options, trace, number, error, wait)
                record.step = str(error)
            await asyncio.sleep(wait)
        record.step = ""
        fetched: T = await self._fetch_deferred(deferred, traffic, policy)
        return fetched

    def _exceeds_first_response_budget(self, error: TinkerError, policy: RetryConfig, next_end_s: float) -> bool:
        """Return whether the address is most likely wrong, and the user did not set how long to retry."""
        is_unreached = isinstance(error, APIConnectionError) and not self._exchanger.is_server_reached
        return is_unreached and policy.has_default_limits and next_end_s > FIRST_RESPONSE_BUDGET_S


def _report_retry(
    options: SendOptions[Any], trace: OperationTrace | None, number: int, error: TinkerError, wait: float
) -> None:
    if trace is not None:
        trace.add_repeated("retry", number, error_name(error), wait)
    if options.on_retry is not None:
        options.on_retry(error, wait)
