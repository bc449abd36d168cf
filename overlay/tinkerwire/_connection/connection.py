"""The connection that all clients of one server share: address, credential, transport, dialect and retry loop."""

from __future__ import annotations

import asyncio
import math
import sys
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from tinkerwire_base.call import Call, WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APIResponseValidationError, TinkerError
from tinkerwire_generated.api.auth import auth_token
from tinkerwire_generated.availability import NEWEST
from tinkerwire_generated.models import AuthTokenRequest, ClientConfigResponse, UntypedAPIFuture

from .._credentials.authorization import Authorization
from .._credentials.secret import Secret, is_sendable
from .._credentials.sources import Credential
from .._futures.building import Build
from .._futures.deadline import Deadline, deadline_error, is_late, time_left
from .._futures.future import APIFuture
from .._futures.operation_record import current
from .._transport.backpressure import InFlightLimit, Traffic
from .._transport.base import Transport
from .._transport.connection_errors import no_time_error
from .._transport.response_body import check_size
from .._usage import UsageCounter
from .._wire.dialect import Dialect, given
from .._wire.server_futures import DeferredResult, Submission
from ..version import __version__
from .build_recorder import BuildRecorder, Exchange
from .call_codec import CallCodec
from .dialect_resolver import DialectResolver
from .known_models import KnownModels
from .operation_runner import OperationRunner, Owner
from .replacement import Replace
from .retry import BUILDING_PATHS, RepeatedErrors, RetryConfig
from .session_state import SessionState
from .throttled_log import ThrottledLog

if TYPE_CHECKING:
    from .._telemetry.reporter import Telemetry

T = TypeVar("T")

REQUEST_TIMEOUT_S = 60.0
SLOWEST_UPLOAD_BYTES_PER_S = 100_000
"""A large body gets so much more time."""
FIRST_RESPONSE_BUDGET_S = 6.0
"""A server that no connection has ever reached is most likely the wrong address: no attempt that would end later."""
RESULTS = frozenset({Traffic.TRAINING, Traffic.TRAINING_FUTURES, Traffic.SAMPLING, Traffic.SAMPLING_FUTURES})
"""Traffic whose responses may be results of operations: some servers give one in place of a promise."""
FetchResult = Callable[["Connection", DeferredResult, Traffic, RetryConfig], Coroutine[Any, Any, Any]]
Abandon = Callable[["Connection", Build], Coroutine[Any, Any, None]]


@attrs.frozen
class Sending(Generic[T]):
    """Options of sending a request; see :meth:`Connection.send`."""

    traffic: Traffic
    policy: RetryConfig
    timeout_s: float
    raise_immediately: tuple[type[TinkerError], ...]
    on_retry: Callable[[TinkerError, float], Any] | None
    replace: Replace[T] | None


class Connection:
    """Sends calls to one server in its dialect. Its coroutines run on the loop thread only."""

    def __init__(
        self,
        base_url: str,
        credential: Credential | None,
        transport: Transport,
        dialect: Dialect | None,
        retry: RetryConfig,
        headers: Mapping[str, str],
    ) -> None:
        self.base_url = base_url
        self._retry = retry
        self._owner: Callable[[], Owner | None] = _nobody
        self.dialects = DialectResolver(self._ask_config, dialect, base_url)
        self._is_transport_closed = False
        self.sampling_limit = InFlightLimit(retry.max_connections)
        self.usage_counter = UsageCounter()
        self.known_models = KnownModels()
        self.session_state = SessionState()
        self.throttled_log = ThrottledLog()
        self.operations = OperationRunner(self.throttled_log, self._record_error, self._abandon)
        self.fetch_result: FetchResult | None = None
        """Polls for a value that the server gives later; set by whoever opens the connection."""
        self.abandon: Abandon | None = None
        """Ends what the server builds for a caller that gave up; set by whoever opens the connection."""
        self.last_response_at = 0.0  # monotonic; never so far
        self._limits = {each: retry.response_limits(is_result=each in RESULTS) for each in Traffic}
        self._is_reached = False
        """True once the server has accepted a connection."""
        self._transport = transport
        self.telemetry: Telemetry | None = None
        """Receives every error of an operation."""
        self._authorization = Authorization(credential, headers, self._token)
        own_headers = {"user-agent": f"tinkerwire/{__version__} Python/{sys.version.split()[0]}"}
        if "user-agent" in self._authorization.headers:
            own_headers.clear()
        self.codec = CallCodec(base_url, own_headers, self.dialects)

    # --- operations ------------------------------------------------------------------------------------------------

    def start(
        self, work: Callable[[], Coroutine[Any, Any, T]], kind: str = "", deadline: Deadline | None = None
    ) -> APIFuture[T]:
        """Run an operation on the loop thread now; ``kind`` is its name in errors and logs.

        Every wait in it ends at the deadline, with RequestTimeoutError; by default that of the retry policy.

        Raises:
            ClientClosedError: the client is closed, or was made before a fork.
        """
        return self.operations.start(work, kind, deadline or self.retry.deadline(), self.owner)

    async def close(self) -> None:
        """End all operations with ClientClosedError, and close the transport."""
        await self.operations.end()
        self._is_transport_closed = True
        await self.dialects.close()
        await self._authorization.close()
        await self._transport.close()

    @property
    def headers(self) -> Mapping[str, Secret]:
        """The user's headers for every request, by lower-case names; each may be a secret."""
        return self._authorization.headers

    @property
    def owner(self) -> Owner | None:
        """The object that keeps this connection open, for users to hold; None once it is gone."""
        return self._owner()

    @property
    def retry(self) -> RetryConfig:
        """The policy of all operations that have none of their own."""
        owner = self._owner()
        return self._retry if owner is None else owner.retry

    def keep_open_while(self, owner: Owner) -> None:
        """Leave the user's functions to ``owner``: held here as well, they would keep alive what they belong to."""
        self._retry = attrs.evolve(self._retry, retry_if=None)
        self._owner = weakref.ref(owner)

    @property
    def closed(self) -> bool:
        """True once new operations are rejected."""
        return self.operations.closed

    @property
    def is_of_this_process(self) -> bool:
        """True in the process that made the client, False in a fork of it."""
        return self.operations.is_of_this_process

    def _abandon(self, build: Build) -> None:
        if self.abandon is not None and not self.session_state.is_expired:
            self.operations.spawn(self.abandon(self, build))

    def _record_error(self, error: Exception) -> None:
        if isinstance(error, TinkerError):
            self._authorization.redaction.error(error)
        if self.telemetry is not None:
            with suppress(Exception):  # the error of the operation is what counts
                self.telemetry.record_exception(error)

    # --- requests --------------------------------------------------------------------------------------------------

    async def call(
        self,
        call: Call[T],
        traffic: Traffic,
        *,
        retry: RetryConfig | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> T:
        """Send a call until it succeeds or the policy gives up; see :meth:`send`.

        Raises:
            DialectError: the wire version in use does not have the call or a field of it; nothing was sent.
            TinkerError: what the last attempt met.
        """
        request = self.codec.encode(call, await self.dialect())
        return await self.send(request, self.codec.reader(call, request), traffic, retry, timeout_s)

    async def send(
        self,
        request: WireRequest,
        read: Callable[[WireResponse], T],
        traffic: Traffic,
        retry: RetryConfig | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
        *,
        raise_immediately: tuple[type[TinkerError], ...] = (),
        on_retry: Callable[[TinkerError, float], Any] | None = None,
        replace: Replace[T] | None = None,
        is_in_line: bool = False,
    ) -> T:
        """The one place where requests are sent again: the same bytes under the same key, if nothing replaces them.

        Args:
            read: makes the result of an answer, or raises its error.
            retry: the policy; the client's own when None.
            not_here: faults that the caller deals with; they are raised at once.
            on_retry: hears of each fault that is going to be retried, and of the wait before it, in seconds.
            replace: returns another request that follows an error.
            is_in_line: whether later operations wait for the end of this request, so that its deadline ends it. Other
                requests that build something go on for a few seconds, to learn what the server builds.

        Raises:
            SessionExpiredError: the session that the request belongs to is gone.
        """
        sending = Sending(traffic, retry or self.retry, timeout_s, raise_immediately, on_retry, replace)
        if request.path not in BUILDING_PATHS:
            return await self._send(request, read, sending, self.exchange)
        recorder = BuildRecorder(request, self.exchange, self.operations.spawn, is_in_line=is_in_line)
        return await recorder.record(self._send(request, recorder.reader(read), sending, recorder.exchange))

    async def _send(
        self, request: WireRequest, read: Callable[[WireResponse], T], sending: Sending[T], exchange: Exchange
    ) -> T:
        traffic, policy, timeout_s = sending.traffic, sending.policy, sending.timeout_s
        raise_immediately, on_retry, replace = sending.raise_immediately, sending.on_retry, sending.replace
        if self.session_state.is_expired and self.session_state.is_used_by(traffic):
            raise self.session_state.expired_error("its heartbeat was answered so")
        started, attempt, track = time.monotonic(), 0, current()
        repeated = RepeatedErrors(request.path)
        while True:
            attempt += 1
            began = time.monotonic()
            track.step = f"{request.method} {self.base_url}{request.path}: no answer so far to attempt {attempt}"
            try:
                left_s = policy.time_limit - (began - started)
                answer = read(await exchange(request, traffic, timeout_s, left_s))
                track.step = ""
                return answer
            except DeferredResult as found:
                deferred = found
                break
            except TinkerError as error:
                track.step = ""
                self._authorization.redaction.error(error)
                # Whoever accepts a connection is there, even if no answer comes.
                self._is_reached = self._is_reached or bool(error.may_have_been_sent)
                now = time.monotonic()
                elapsed, took = now - started, now - began
                replacement = None if replace is None else replace(error)
                if replacement is not None:
                    request, read = replacement.request, replacement.read
                    if replacement.is_due:
                        if on_retry is not None:
                            on_retry(error, 0.0)
                        continue
                    error = replacement.error
                wait = policy.wait_before_retry(error, attempt, elapsed, is_permanent=repeated.is_permanent(error))
                if replacement is not None and replacement.is_hopeless:
                    wait = None
                if (
                    wait is None
                    or wait >= time_left()
                    or isinstance(error, raise_immediately)
                    or self._exceeds_first_response_budget(error, policy, elapsed + wait + took)
                ):
                    if await self.session_state.is_ended_by(error, traffic, raise_immediately):
                        raise self.session_state.expired_error(str(error)) from error
                    raise error
                if attempt > 1 or not self.last_response_at:
                    self.throttled_log.warn("retry", "%s; attempt %d follows in %.1f s", error, attempt + 1, wait)
                if on_retry is not None:
                    on_retry(error, wait)
                track.step = str(error)
            await asyncio.sleep(wait)
        track.step = ""
        if self.fetch_result is None:
            raise TinkerError(
                f"{request.method} {self.base_url}{request.path}: the server gave a future, not the result"
            )
        result: T = await self.fetch_result(self, deferred, traffic, policy)
        return result

    async def submit(self, call: Call[UntypedAPIFuture], traffic: Traffic) -> Submission:
        """Send a call whose contract has a future; errors as for :meth:`call`."""
        request = self.codec.encode(call, await self.dialect())
        return await self.send(request, self.codec.submission_reader(call, request), traffic)

    async def exchange(
        self, request: WireRequest, traffic: Traffic, timeout_s: float, max_s: float = float("inf")
    ) -> WireResponse:
        """Send and bring the answer, whatever its status; once more only if the server wants another token.

        A large body gets more than ``timeout_s`` seconds, but never more than its operation has left, or ``max_s``
        where it is part of none.
        """
        if self._is_transport_closed:
            raise self.operations.closed_error()
        if request.content is not None:
            timeout_s += len(request.content) / SLOWEST_UPLOAD_BYTES_PER_S
        if is_late():
            raise deadline_error()
        left_s = time_left()
        # An operation has one deadline; other requests have the time of their own policy.
        timeout_s = min(timeout_s, max_s if left_s == math.inf else left_s)
        if timeout_s <= 0:
            raise no_time_error(request, self.base_url)
        request = attrs.evolve(request, limits=self._limits[traffic])
        authorization = self._authorization
        credential = authorization.credential_for(request, self.known_dialect.config if self.known_dialect else None)
        secret = None if credential is None else await self._obtained(credential.get())
        # The credential joins at the last moment, so that no request object that is kept ever shows it.
        answer = await self._transport.send(authorization.signed(request, secret), traffic, timeout_s)
        if credential is not None and secret is not None:
            newer = await self._obtained(authorization.after_refusal(credential, secret, answer))
            if newer is not None:
                answer = await self._transport.send(authorization.signed(request, newer), traffic, timeout_s)
        self.last_response_at = time.monotonic()
        check_size(request, self.base_url + request.path, answer.status, answer.content)
        return authorization.redaction.answer(answer)

    async def token(self) -> Secret | None:
        """The token by which the server knows the user; None where that is an API key, or nothing.

        Raises:
            TinkerError: what obtaining it met.
        """
        return await self._authorization.token((await self.dialect()).config)

    async def _obtained(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except TinkerError as error:
            # Tried again already as often as it should be, and the request that waits for it was not taken up.
            error.from_credential_refresh = True
            raise

    async def _token(self) -> Secret:
        try:
            answer = await self.call(auth_token(body=AuthTokenRequest()), Traffic.SESSION)
            token = Secret(answer.jwt)
            del answer
        except APIResponseValidationError as error:
            # Its text shows the answer, in which the token may stand under another name.
            token, status = Secret(""), error.status_code
        else:
            status = 200
        if not is_sendable(token.reveal()):
            raise TinkerError(f"POST {self.base_url}/api/v1/auth/token: HTTP {status}: the answer holds no token")
        return token

    def redacted(self, value: Any) -> Any:
        """A JSON value without the secrets of this client."""
        return self._authorization.redaction.value(value)

    def _exceeds_first_response_budget(self, error: TinkerError, policy: RetryConfig, end: float) -> bool:
        """Return whether the address most likely leads nowhere, and the user did not set how long to try it."""
        is_unreached = isinstance(error, APIConnectionError) and not self._is_reached and not self.last_response_at
        return is_unreached and policy.has_default_limits and end > FIRST_RESPONSE_BUDGET_S

    # --- the dialect in use -------------------------------------------------------------------------------------------

    @property
    def known_dialect(self) -> Dialect | None:
        """The dialect in use; None while it was not asked for."""
        return self.dialects.known

    async def dialect(self) -> Dialect:
        """What the server speaks; asks it once, unless the wire version was given."""
        return await self.dialects.get()

    async def _ask_config(self, call: Call[ClientConfigResponse]) -> tuple[ClientConfigResponse, WireResponse]:
        request = self.codec.encode(call, given(NEWEST))
        read = self.codec.reader(call, request)
        return await self.send(request, lambda answer: (read(answer), answer), Traffic.SESSION)


def _nobody() -> None:
    return None
