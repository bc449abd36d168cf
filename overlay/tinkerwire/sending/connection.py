"""What all clients of one server share: address, credential, transport, dialect, and the one retry loop."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
import uuid
import weakref
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from tinkerwire_base.call import Call, WireRequest, WireResponse, default_converter
from tinkerwire_base.errors import (
    APIConnectionError,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
    ClientClosedError,
    RequestTimeoutError,
    SessionExpiredError,
    TinkerError,
)
from tinkerwire_generated.api.auth import auth_token
from tinkerwire_generated.models import AuthTokenRequest, ClientConfigResponse, UntypedAPIFuture
from tinkerwire_generated.times import NEWEST

from ..credentials.authorization import Authorization
from ..credentials.secret import Secret, is_sendable
from ..credentials.sources import Credential
from ..futures.deadline import Deadline, deadline_error, is_late, time_left
from ..futures.future import APIFuture
from ..futures.loop import LOOP
from ..futures.reporting import log
from ..futures.tracking import OnWait, Track, Watch, begin, current, start_apart
from ..known_models import KnownModels
from ..usage import Meter
from ..version import __version__
from ..wire import bodies
from ..wire.dialect import Dialect, given
from ..wire.server_futures import (
    RESULT_TYPES,
    DeferredResult,
    ImmediateResult,
    Submission,
    deferred_result,
    has_immediate_result,
)
from .backpressure import InFlightLimit, Traffic
from .discovery import DialectResolver
from .replacement import Replace
from .response_body import check_size
from .retry import RepeatedErrors, RetryConfig
from .session_loss import may_mean_loss, names_lost_session
from .transport import Transport, no_time_error

if TYPE_CHECKING:
    from ..telemetry.reporter import Telemetry

T = TypeVar("T")

REQUEST_TIMEOUT_S = 60.0
SLOWEST_UPLOAD_BYTES_PER_S = 100_000
"""A large body gets so much more time."""
UNREACHED_S = 6.0
"""A server that no connection has ever reached is most likely the wrong address: no attempt that would end later."""
SAME_WORD_EVERY_S = 10.0
UNKNOWN = (404, 405, 415, 422)
"""What a server may answer to something that its wire version does not have."""
GONE = 410
"""What a server answers to operations in a session that it no longer has."""
RESULTS = frozenset({Traffic.TRAINING, Traffic.TRAINING_FUTURES, Traffic.SAMPLING, Traffic.SAMPLING_FUTURES})
"""Traffic whose responses may be results of operations: some servers give one in place of a promise."""
OF_A_SESSION = frozenset({Traffic.SESSION, Traffic.TRAINING, Traffic.SAMPLING})
NO_HEADERS: Mapping[str, str] = {}
START_S = 0.005
"""How long a new operation takes to begin on the loop."""
CLOSE_S = 5.0
"""How long close waits for operations to take notice."""
FetchResult = Callable[["Connection", DeferredResult, Traffic, RetryConfig], Coroutine[Any, Any, Any]]


class Owner:
    """What keeps a connection open, with the user's functions that its operations call.

    Clients and operations under way hold it. Background work must not: it would keep a dropped client open.
    """

    on_wait: OnWait | None = None
    """Called on the loop thread for every wait that is long enough to be logged."""
    retry: RetryConfig


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
        self._is_shut = False
        self.sampling_limit = InFlightLimit(retry.max_connections)
        self.meter = Meter()
        self.known_models = KnownModels()
        self.closed = False
        self.session_id = ""
        """Of the session that is used over this connection; empty while there is none."""
        self.is_expired = False
        """Whether the server said that this session is gone."""
        self.is_session_gone: Callable[[], Coroutine[Any, Any, bool]] | None = None
        """Asks the server about this session, once there is one."""
        self.fetch_result: FetchResult | None = None
        """Polls for a value that the server gives later; set by whoever opens the connection."""
        self._pid = os.getpid()
        self._under_way: dict[Track, None] = {}
        """Operations from their start to their end, in order; changed on any thread, one step at a time."""
        self._running: set[asyncio.Task[Any]] = set()
        self._background: set[asyncio.Task[Any]] = set()
        self.last_heard = 0.0  # monotonic; never so far
        self._limits = {each: retry.response_limits(is_result=each in RESULTS) for each in Traffic}
        self._is_reached = False
        """Whether the server ever accepted a connection."""
        self._last_words: dict[str, float] = {}
        self._transport = transport
        self.telemetry: Telemetry | None = None
        """Hears of every fault of an operation."""
        self._authorization = Authorization(credential, headers, self._token)
        self._headers = {"user-agent": f"tinkerwire/{__version__} Python/{sys.version.split()[0]}"}
        if "user-agent" in self._authorization.headers:
            self._headers.clear()

    # --- operations ------------------------------------------------------------------------------------------------

    def start(
        self, work: Callable[[], Coroutine[Any, Any, T]], kind: str = "", deadline: Deadline | None = None
    ) -> APIFuture[T]:
        """Run an operation on the loop thread now; ``kind`` is what texts call it.

        Every wait in it ends at the deadline, with RequestTimeoutError; by default that of the retry policy.

        Raises:
            ClientClosedError: the client is closed, or was made before a fork.
        """
        if self.closed or not self.is_of_this_process:
            raise self._unusable()
        track, limit, owner = Track(kind), deadline or self.retry.deadline(), self.owner
        self._under_way[track] = None
        try:
            future = LOOP.start(lambda: self._operation(work, track, limit, owner))
            future.add_done_callback(lambda _: self._under_way.pop(track, None))
            return APIFuture(future, track)
        except BaseException as error:
            self._under_way.pop(track, None)
            if not isinstance(error, RuntimeError) or not self.closed:
                raise
            # By a signal handler or another thread, since it was asked above.
            raise self._unusable() from None

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work that no operation waits for, and that ends with them; on the loop thread."""
        task = start_apart(work)
        self._background.add(task)
        task.add_done_callback(self._ended)
        return task

    def under_way(self) -> list[Track]:
        """The operations that were started and have not ended."""
        return list(self._under_way)

    async def wait_for_operations(self, timeout: float | None) -> None:
        """Wait until no operation is under way or the client is closed, at most ``timeout`` seconds."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while self._under_way and not self.closed and (left := end - time.monotonic()) > 0:
            if self._running:
                await asyncio.wait(self._running, timeout=None if left == math.inf else left)
            else:
                # It is on its way to the loop, or on its way to its future.
                await asyncio.sleep(min(left, START_S))

    async def end_operations(self) -> None:
        """End all operations with ClientClosedError; what is not one of them can still be sent."""
        self.closed = True
        tasks = self._running | self._background
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)

    async def close(self) -> None:
        """End all operations with ClientClosedError, and close the transport."""
        await self.end_operations()
        self._is_shut = True
        await self.dialects.close()
        await self._authorization.close()
        await self._transport.close()

    @property
    def headers(self) -> Mapping[str, Secret]:
        """The user's headers for every request, by lower-case names; each may be a secret."""
        return self._authorization.headers

    @property
    def owner(self) -> Owner | None:
        """What keeps this connection open, to be held by who uses it; None once that is gone."""
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
    def is_of_this_process(self) -> bool:
        """Whether this is the process that made the client, and not a fork of it."""
        return self._pid == os.getpid()

    async def _operation(
        self, work: Callable[[], Coroutine[Any, Any, T]], track: Track, deadline: Deadline, owner: Owner | None
    ) -> T:
        task = asyncio.current_task()
        assert task is not None
        if self.closed:
            raise self._unusable()
        self._running.add(task)
        task.add_done_callback(self._ended)
        begin(track)
        timer = deadline.begin(task)
        watch = Watch(track, self.say, None if owner is None else owner.on_wait)
        try:
            return await work()
        except asyncio.CancelledError:
            if self.closed:
                raise self._unusable() from None
            if deadline.is_over:
                raise self._late(deadline, track) from None
            raise
        except Exception as fault:
            if isinstance(fault, APITimeoutError) and deadline.is_over:
                raise self._late(deadline, track) from fault
            if isinstance(fault, TinkerError):
                self._authorization.redaction.fault(fault)
            self._report(fault)
            raise
        finally:
            if timer is not None:
                timer.cancel()
            watch.end()
            track.ended()
            # An error keeps this frame, and must not keep the client open.
            del work, owner

    def _late(self, deadline: Deadline, track: Track) -> RequestTimeoutError:
        error = deadline.error(track)
        self._authorization.redaction.fault(error)
        self._report(error)
        return error

    def _report(self, error: Exception) -> None:
        if self.telemetry is not None:
            with suppress(Exception):  # the error of the operation is what counts
                self.telemetry.note(error)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._background.discard(task)
        if not task.cancelled():
            # The future has it, unless the user cancelled that: then nobody need hear of the error.
            task.exception()

    def _unusable(self) -> ClientClosedError:
        why = "was closed" if self.is_of_this_process else "belongs to the process that this one was forked from"
        return ClientClosedError(f"the client {why}; make a new ServiceClient")

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
        request = self.encode(call, await self.dialect())
        return await self.send(request, self.reader(call, request), traffic, retry, timeout_s)

    async def send(
        self,
        request: WireRequest,
        read: Callable[[WireResponse], T],
        traffic: Traffic,
        retry: RetryConfig | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
        *,
        not_here: tuple[type[TinkerError], ...] = (),
        on_fault: Callable[[TinkerError, float], Any] | None = None,
        replace: Replace[T] | None = None,
    ) -> T:
        """The one place where requests are sent again: the same bytes under the same key, if nothing replaces them.

        Args:
            read: makes the result of an answer, or raises its error.
            retry: the policy; the client's own when None.
            not_here: faults that the caller deals with; they are raised at once.
            on_fault: hears of each fault that is going to be retried, and of the wait before it, in seconds.
            replace: returns another request that follows an error.

        Raises:
            SessionExpiredError: the session that the request belongs to is gone.
        """
        if self.is_expired and self._is_of_session(traffic):
            raise self.session_expired("its heartbeat was answered so")
        policy = retry or self.retry
        started, attempt, track = time.monotonic(), 0, current()
        repeated = RepeatedErrors(request.path)
        while True:
            attempt += 1
            began = time.monotonic()
            track.step = f"{request.method} {self.base_url}{request.path}: no answer so far to attempt {attempt}"
            try:
                left_s = policy.time_limit - (began - started)
                answer = read(await self.exchange(request, traffic, timeout_s, left_s))
                track.step = ""
                return answer
            except DeferredResult as found:
                deferred = found
                break
            except TinkerError as fault:
                track.step = ""
                self._authorization.redaction.fault(fault)
                # Whoever accepts a connection is there, even if no answer comes.
                self._is_reached = self._is_reached or getattr(fault, "may_be_sent", False)
                now = time.monotonic()
                elapsed, took = now - started, now - began
                replacement = None if replace is None else replace(fault)
                if replacement is not None:
                    request, read = replacement.request, replacement.read
                    if replacement.is_due:
                        if on_fault is not None:
                            on_fault(fault, 0.0)
                        continue
                    fault = replacement.error
                wait = policy.wait_before_retry(fault, attempt, elapsed, is_permanent=repeated.is_permanent(fault))
                if replacement is not None and replacement.is_hopeless:
                    wait = None
                if (
                    wait is None
                    or wait >= time_left()
                    or isinstance(fault, not_here)
                    or self._is_hopeless(fault, policy, elapsed + wait + took)
                ):
                    if await self._is_of_the_sessions_end(fault, traffic, not_here):
                        raise self.session_expired(str(fault)) from fault
                    raise fault
                if attempt > 1 or not self.last_heard:
                    self.say("retry", "%s; attempt %d follows in %.1f s", fault, attempt + 1, wait)
                if on_fault is not None:
                    on_fault(fault, wait)
                track.step = str(fault)
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
        request = self.encode(call, await self.dialect())
        return await self.send(request, self.submission_reader(call, request), traffic)

    def encode(self, call: Call[Any], dialect: Dialect, headers: Mapping[str, str] = NO_HEADERS) -> WireRequest:
        """The bytes of a call in a dialect, with a key of its own and all headers but the credential."""
        request = bodies.encode(call, dialect)
        whole = {**self._headers, **request.headers, **headers}
        if request.method != "GET":
            whole["x-idempotency-key"] = f"tinkerwire-{uuid.uuid4()}"
        return attrs.evolve(request, headers=whole)

    def reader(self, call: Call[T], request: WireRequest) -> Callable[[WireResponse], T]:
        """Return a function that returns the result in a response, or raises its error.

        It raises DeferredResult for a future in place of the result; :meth:`send` polls for that.
        """

        def read(answer: WireResponse) -> T:
            deferred = deferred_result(call, answer)
            if deferred is not None:
                raise deferred
            return self._parse(call, request, answer)

        return read

    def submission_reader(
        self, call: Call[UntypedAPIFuture], request: WireRequest
    ) -> Callable[[WireResponse], Submission]:
        """Return the reader of responses to an operation: a future, or the result if the server already gives it."""

        def read(answer: WireResponse) -> Submission:
            try:
                submitted = self._parse(call, request, answer)
            except APIResponseValidationError as error:
                if has_immediate_result(call, answer):
                    return ImmediateResult(answer)
                kind = RESULT_TYPES[call.operation.name].__name__
                error.message = f"{error.message}; expected a request_id, or a {kind}"
                error.args = (error.message,)
                raise
            # Some servers give every response an id.
            if submitted.extra_fields and has_immediate_result(call, answer):
                return ImmediateResult(answer)
            return submitted

        return read

    def _parse(self, call: Call[T], request: WireRequest, answer: WireResponse) -> T:
        try:
            return call.parse(answer, default_converter(), self.base_url + request.path)
        except APIStatusError as fault:
            if fault.status_code in UNKNOWN and self.known_dialect is not None:
                fault.dialect = self.known_dialect
                fault.message = f"{fault.message}; it was asked in {self.known_dialect}"
                fault.args = (fault.message,)
            raise

    async def exchange(
        self, request: WireRequest, traffic: Traffic, timeout_s: float, most_s: float = float("inf")
    ) -> WireResponse:
        """Send and bring the answer, whatever its status; once more only if the server wants another token.

        A large body gets more than ``timeout_s`` seconds, but never more than its operation has left, or ``most_s``
        where it is part of none.
        """
        if self._is_shut:
            raise self._unusable()
        if request.content is not None:
            timeout_s += len(request.content) / SLOWEST_UPLOAD_BYTES_PER_S
        if is_late():
            raise deadline_error()
        left_s = time_left()
        # An operation has one deadline; other requests have the time of their own policy.
        timeout_s = min(timeout_s, most_s if left_s == math.inf else left_s)
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
        self.last_heard = time.monotonic()
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
        except TinkerError as fault:
            # Tried again already as often as it should be, and the request that waits for it was not taken up.
            fault.__dict__["is_of_credential"] = True
            raise

    async def _token(self) -> Secret:
        try:
            answer = await self.call(auth_token(body=AuthTokenRequest()), Traffic.SESSION)
            token = Secret(answer.jwt)
            del answer
        except APIResponseValidationError as fault:
            # Its text shows the answer, in which the token may stand under another name.
            token, status = Secret(""), fault.status_code
        else:
            status = 200
        if not is_sendable(token.reveal()):
            raise TinkerError(f"POST {self.base_url}/api/v1/auth/token: HTTP {status}: the answer holds no token")
        return token

    def say(self, kind: str, message: str, *parts: object) -> None:
        """Log a warning, but of each kind not more than one in ten seconds: thousands of operations may have it."""
        now = time.monotonic()
        if now - self._last_words.get(kind, float("-inf")) >= SAME_WORD_EVERY_S:
            self._last_words[kind] = now
            log.warning(message, *parts)

    def redacted(self, value: Any) -> Any:
        """A JSON value without the secrets of this client."""
        return self._authorization.redaction.value(value)

    def _is_of_session(self, traffic: Traffic) -> bool:
        return bool(self.session_id) and traffic in OF_A_SESSION

    async def _is_of_the_sessions_end(
        self, fault: TinkerError, traffic: Traffic, not_here: tuple[type[TinkerError], ...]
    ) -> bool:
        if not isinstance(fault, APIStatusError) or not self._is_of_session(traffic):
            return False
        if fault.status_code == GONE:
            return True
        # A heartbeat that asked about its own session would ask for ever.
        return not isinstance(fault, not_here) and traffic != Traffic.SESSION and await self.has_lost_session(fault)

    async def has_lost_session(self, error: TinkerError) -> bool:
        """Check whether an error means that the server no longer has the session, as after a restart.

        Servers name what they miss in many ways, such as the model or the request, so the server is asked about the
        session itself unless the error already says that the session is lost.
        """
        if not self.session_id or not may_mean_loss(error):
            return False
        if self.is_expired or names_lost_session(error):
            return True
        return self.is_session_gone is not None and await self.is_session_gone()

    def session_expired(self, why: str) -> SessionExpiredError:
        """Return the error for an operation whose session the server no longer has."""
        return SessionExpiredError(
            f"session {self.session_id}: the server says that it is gone ({why}); make a new ServiceClient, and new "
            "clients from what was saved: save_state() before, create_training_client_from_state_with_optimizer() now",
            session_id=self.session_id,
        )

    def _is_hopeless(self, fault: TinkerError, policy: RetryConfig, end: float) -> bool:
        """Return whether the address most likely leads nowhere, and the user did not set how long to try it."""
        is_unreached = isinstance(fault, APIConnectionError) and not self._is_reached and not self.last_heard
        return is_unreached and policy.tries_by_default and end > UNREACHED_S

    # --- the dialect in use -------------------------------------------------------------------------------------------

    @property
    def known_dialect(self) -> Dialect | None:
        """The dialect in use; None while it was not asked for."""
        return self.dialects.known

    async def dialect(self) -> Dialect:
        """What the server speaks; asks it once, unless the wire version was given."""
        return await self.dialects.get()

    async def _ask_config(self, call: Call[ClientConfigResponse]) -> tuple[ClientConfigResponse, WireResponse]:
        request = self.encode(call, given(NEWEST))
        read = self.reader(call, request)
        return await self.send(request, lambda answer: (read(answer), answer), Traffic.SESSION)


def _nobody() -> None:
    return None
