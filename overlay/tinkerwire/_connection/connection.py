"""The connection that all clients of one server share: address, credential, transport, dialect and session state."""

from __future__ import annotations

import math
import sys
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import attrs

from tinkerwire_base.call import Call, WireRequest, WireResponse
from tinkerwire_base.errors import APIResponseValidationError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.auth import auth_token
from tinkerwire_generated.availability import NEWEST

from .._credentials.authorization import Authorization
from .._credentials.secret import Secret, is_sendable
from .._credentials.sources import Credential
from .._futures.build_request import BuildRequest
from .._futures.deadline import Deadline
from .._futures.event_loop import LOOP
from .._futures.future import APIFuture
from .._futures.logger import log
from .._futures.operation_record import current_operation
from .._transport.backpressure import InFlightLimit, Traffic
from .._transport.base import Transport
from .._transport.poll_connections import poll_connections_of
from .._usage import UsageCounter
from .._wire.dialect import Dialect
from .._wire.server_futures import DeferredResult, Submission
from ..version import __version__
from .build_recorder import BuildRecorder
from .call_codec import CallCodec
from .dialect_resolver import DialectResolver
from .exchanger import Exchanger
from .operation_runner import OperationRunner, Owner
from .poll_pace import PollPace
from .replacement import Replace
from .retry import BUILDING_PATHS, RetryConfig
from .send_options import OnRetry, SendOptions
from .sender import Sender
from .session_state import SessionState
from .start_queue import StartQueue
from .throttled_log import ThrottledLog

if TYPE_CHECKING:
    from .._trace.metrics import Metrics
    from .._trace.recorder import Receiver

T = TypeVar("T")
REQUEST_TIMEOUT_S = 60.0
NEVER_HELD = frozenset({Traffic.SAMPLING, Traffic.SESSION})
"""Traffic to which servers respond as soon as they can."""
FetchResult: TypeAlias = Callable[["Connection", DeferredResult, Traffic, RetryConfig], Coroutine[Any, Any, Any]]
Abandon: TypeAlias = Callable[["Connection", BuildRequest], Coroutine[Any, Any, None]]


@attrs.define
class KnownModels:
    """The base models of trained models, and the context lengths of base models. Used on the loop thread."""

    base_models: dict[str, str] = attrs.field(factory=dict)
    """Base models by the id of the models that this connection created from them."""
    context_lengths: dict[str, int] = attrs.field(factory=dict)
    """Maximum tokens of prompt and sample together by base model, from the server's capabilities."""


class ErrorObserver(Protocol):
    """Receives the errors of operations, as telemetry does."""

    def record_exception(self, error: BaseException) -> None:
        """Record the error of an operation."""


class Connection:
    """Sends calls to one server in its dialect. Its coroutines run on the loop thread only.

    Args:
        base_url: the address of the server.
        credential: identifies the user; None for servers that need no credential.
        transport: sends the requests; closed with the connection.
        dialect: the dialect of the server; None to discover it.
        retry: the policy of operations that have no policy of their own.
        headers: further headers of every request; each may be a secret.
        fetch_result: polls for a result that the server announces with a future.
        abandon: ends what the server builds for a caller that gave up.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential | None,
        transport: Transport,
        dialect: Dialect | None,
        retry: RetryConfig,
        headers: Mapping[str, str],
        *,
        fetch_result: FetchResult,
        abandon: Abandon,
    ) -> None:
        self.base_url = base_url
        self._retry = retry
        self._owner: Callable[[], Owner | None] = _no_owner
        self._error_observer: ErrorObserver | None = None
        self._abandon_build = abandon
        self.dialects = DialectResolver(self._fetch_config, dialect, base_url)
        self.poll_connections = poll_connections_of(transport)
        self.poll_pace = PollPace()
        self.sampling_limit = InFlightLimit(retry.max_connections)
        self.usage_counter = UsageCounter()
        self.known_models = KnownModels()
        self._metrics: Metrics | None = None
        self.trace_path: Path | None = None
        """File of the trace, for copies of clients in other processes; None without a trace."""
        self.session_state = SessionState()
        self.throttled_log = ThrottledLog()
        self.operations = OperationRunner(self.throttled_log, self._record_error, self._abandon)
        self._authorization = Authorization(credential, headers, self._fetch_token)
        own_headers = {"user-agent": f"tinkerwire/{__version__} Python/{sys.version.split()[0]}"}
        if "user-agent" in self._authorization.headers:
            own_headers.clear()
        self.codec = CallCodec(base_url, own_headers, self.dialects)
        self._exchanger = Exchanger(
            base_url, transport, self._authorization, self.dialects, retry, self.operations.closed_error
        )
        self._sender = Sender(
            base_url,
            self._exchanger,
            self.session_state,
            self.throttled_log,
            self._authorization.redaction,
            lambda deferred, traffic, policy: fetch_result(self, deferred, traffic, policy),
        )

    # --- operations ------------------------------------------------------------------------------------------------

    def start(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        kind: str = "",
        deadline: Deadline | None = None,
        queue: StartQueue | None = None,
    ) -> APIFuture[T]:
        """Start an operation on the loop thread, or as soon as ``queue`` has room for it.

        Its name in errors and logs is ``kind``. Every wait in it ends at the deadline, with RequestTimeoutError; by
        default that of the retry policy.

        Raises:
            ClientClosedError: the client is closed, or was made before a fork.
        """
        return self.operations.start(work, kind, deadline or self.retry.deadline(), self.owner, queue)

    async def close(self) -> None:
        """End all operations with ClientClosedError, and close the transport."""
        await self.operations.end()
        self._exchanger.reject_new()
        await self.dialects.close()
        await self._exchanger.close()
        if self.operations.recorder is not None:
            self.operations.recorder.close()

    def attach(self, owner: Owner, error_observer: ErrorObserver | None) -> None:
        """Attach the object that keeps the connection open, and the observer of the errors of its operations.

        The user's functions are the owner's: a reference to them here would keep alive the clients that they use.
        """
        self._retry = attrs.evolve(self._retry, retry_if=None)
        self._owner = weakref.ref(owner)
        self._error_observer = error_observer

    @property
    def owner(self) -> Owner | None:
        """The object that keeps this connection open, for clients to hold; None once it is gone."""
        return self._owner()

    @property
    def retry(self) -> RetryConfig:
        """The policy of operations that have no policy of their own."""
        owner = self._owner()
        return self._retry if owner is None else owner.retry

    @property
    def closed(self) -> bool:
        """True once new operations are rejected."""
        return self.operations.closed

    @property
    def is_of_this_process(self) -> bool:
        """True in the process that made the client, False in a fork of it."""
        return self.operations.is_of_this_process

    def _abandon(self, build: BuildRequest) -> None:
        if not self.session_state.is_expired:
            self.operations.spawn(self._abandon_build(self, build))

    def _record_error(self, error: Exception) -> None:
        if isinstance(error, TinkerError):
            self._authorization.redaction.redact_error(error)
        if self._error_observer is not None:
            with suppress(Exception):  # the error of the operation matters more
                self._error_observer.record_exception(error)

    # --- recording -------------------------------------------------------------------------------------------------

    def record(self, receiver: Receiver) -> None:
        """Pass the operations that start from now on to a receiver, too; under ``LOOP.opening_lock``."""
        from .._trace.recorder import Recorder  # noqa: PLC0415  (most programs record nothing)

        recorder = self.operations.recorder or Recorder()
        recorder.add_receiver(receiver)
        self.operations.recorder = recorder

    def metrics(self) -> Metrics:
        """Return the metrics of this connection; the first call starts them."""
        with LOOP.opening_lock:
            from .._trace.metrics import Metrics, MetricsReceiver  # noqa: PLC0415

            if self._metrics is None:
                is_late = self.last_response_at is not None or self.operations.under_way()
                self._metrics = Metrics(self._flush_recorder)
                self.record(MetricsReceiver(self._metrics))
                if is_late:
                    log.warning(
                        "metrics: operations that started before service.metrics was first read are not counted; read "
                        "it right after creating the ServiceClient"
                    )
            return self._metrics

    def _flush_recorder(self) -> None:
        if self.operations.recorder is not None:
            # The thread that gets a result may come here before the loop has recorded it.
            LOOP.settle()
            self.operations.recorder.flush()

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
            TinkerError: the last attempt failed.
        """
        trace = current_operation().trace
        if trace is not None and not trace.kind:
            trace.kind = call.operation.name
        request = self.codec.encode(call, await self.dialect())
        return await self.send(request, self.codec.reader(call, request), traffic, retry, timeout_s)

    async def submit(self, call: Call[models.UntypedAPIFuture], traffic: Traffic) -> Submission:
        """Send a call whose contract has a future; errors as for :meth:`call`."""
        request = self.codec.encode(call, await self.dialect())
        return await self.send(request, self.codec.submission_reader(call, request), traffic)

    async def send(
        self,
        request: WireRequest,
        read: Callable[[WireResponse], T],
        traffic: Traffic,
        retry: RetryConfig | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
        *,
        raise_immediately: tuple[type[TinkerError], ...] = (),
        on_retry: OnRetry | None = None,
        replace: Replace[T] | None = None,
        is_in_line: bool = False,
    ) -> T:
        """Send a request until it succeeds or the policy gives up.

        Args:
            request: the request.
            read: returns the result of a response, or raises its error.
            traffic: the kind of the request.
            retry: the policy; None for that of the client.
            timeout_s: time limit of one attempt.
            raise_immediately: errors that the caller handles itself; they are not retried here.
            on_retry: called before each retry with the error, and the wait in seconds.
            replace: returns another request that follows an error.
            is_in_line: whether later operations wait for the end of this request, so that its deadline ends it. Other
                requests that build something continue for a few seconds, to learn what the server builds.

        Raises:
            SessionExpiredError: the server no longer has the session of the request.
        """
        options = SendOptions(traffic, retry or self.retry, timeout_s, raise_immediately, on_retry, replace)
        if request.path not in BUILDING_PATHS:
            return await self._sender.send(request, read, options, self.exchange)
        recorder = BuildRecorder(request, self.exchange, self.operations.spawn, is_in_line=is_in_line)
        sending = self._sender.send(request, recorder.reader(read), options, recorder.exchange)
        return await recorder.record(sending)

    async def exchange(
        self, request: WireRequest, traffic: Traffic, timeout_s: float, max_s: float = math.inf
    ) -> WireResponse:
        """Send a request once, and return the response of any status; see :meth:`Exchanger.exchange`."""
        sent_at = time.monotonic()
        response = await self._exchanger.exchange(request, traffic, timeout_s, max_s)
        if traffic in NEVER_HELD:
            self.poll_pace.observe(time.monotonic() - sent_at)
        return response

    @property
    def last_response_at(self) -> float | None:
        """Monotonic time of the last response; None before the first."""
        return self._exchanger.last_response_at

    # --- credential and dialect ------------------------------------------------------------------------------------

    @property
    def headers(self) -> Mapping[str, Secret]:
        """The user's headers for every request, by lower-case names; each may be a secret."""
        return self._authorization.headers

    async def token(self) -> Secret | None:
        """Return the token by which the server knows the user; None if it expects an API key or nothing.

        Raises:
            TinkerError: the token could not be obtained.
        """
        return await self._authorization.token((await self.dialect()).config)

    def redact(self, value: Any) -> Any:
        """Return a JSON value without the secrets of this client."""
        return self._authorization.redaction.redact_value(value)

    @property
    def known_dialect(self) -> Dialect | None:
        """The dialect in use; None before the first request."""
        return self.dialects.current

    async def dialect(self) -> Dialect:
        """Return the dialect of the server; discover it with the first request unless the wire version is set."""
        return await self.dialects.get()

    async def _fetch_token(self) -> Secret:
        try:
            response = await self.call(auth_token(body=models.AuthTokenRequest()), Traffic.SESSION)
            token = Secret(response.jwt)
            del response
        except APIResponseValidationError as error:
            # Its text shows the response, which may hold the token under another name.
            token, status = Secret(""), error.status_code
        else:
            status = 200
        if not is_sendable(token.reveal()):
            raise TinkerError(
                f"POST {self.base_url}/api/v1/auth/token: HTTP {status}: the response must contain a token"
            )
        return token

    async def _fetch_config(
        self, call: Call[models.ClientConfigResponse]
    ) -> tuple[models.ClientConfigResponse, WireResponse]:
        request = self.codec.encode(call, Dialect.for_version(NEWEST))
        read = self.codec.reader(call, request)
        return await self.send(request, lambda response: (read(response), response), Traffic.SESSION)


def _no_owner() -> None:
    return None
