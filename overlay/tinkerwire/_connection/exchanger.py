"""One attempt of a request: it joins the credential, the time limit and the size limits, and uses the transport."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import ClientClosedError, TinkerError

from .._credentials.authorization import Authorization
from .._futures.deadline import deadline_error, is_deadline_passed, remaining_s
from .._transport.backpressure import Traffic
from .._transport.base import Transport
from .._transport.errors import no_time_error
from .._transport.response_body import check_size
from .dialect_resolver import DialectResolver
from .retry import RetryConfig

T = TypeVar("T")
SLOWEST_UPLOAD_BYTES_PER_S = 100_000
"""A request gets this much more time per byte of its body."""
RESULTS = frozenset({Traffic.TRAINING, Traffic.TRAINING_FUTURES, Traffic.SAMPLING, Traffic.SAMPLING_FUTURES})
"""Traffic whose responses may be results of operations: some servers return one in place of a future."""


class Exchanger:
    """Sends attempts of requests over one transport. Used on the loop thread.

    Args:
        base_url: the address of the server.
        transport: closed with this.
        authorization: closed with this.
        dialects: holds the server's flags, which decide what credential it expects.
        retry: sets the size limits of responses.
        closed_error: makes the error of a request after close.
    """

    def __init__(
        self,
        base_url: str,
        transport: Transport,
        authorization: Authorization,
        dialects: DialectResolver,
        retry: RetryConfig,
        closed_error: Callable[[], ClientClosedError],
    ) -> None:
        self._base_url = base_url
        self._transport = transport
        self._authorization = authorization
        self._dialects = dialects
        self._limits = {traffic: retry.response_limits(is_result=traffic in RESULTS) for traffic in Traffic}
        self._closed_error = closed_error
        self._closed = False
        self.last_response_at: float | None = None
        """Monotonic time of the last response; None before the first."""
        self._was_connected = False

    @property
    def is_server_reached(self) -> bool:
        """True once the server has accepted a connection."""
        return self._was_connected or self.last_response_at is not None

    def record_error(self, error: TinkerError) -> None:
        """Record the error of an attempt: a server that accepts a connection exists, even if no response arrives."""
        self._was_connected = self._was_connected or bool(error.may_have_been_sent)

    async def exchange(
        self, request: WireRequest, traffic: Traffic, timeout_s: float, max_s: float = math.inf
    ) -> WireResponse:
        """Send a request and return the response of any status; resend it once if the server requires another token.

        Args:
            request: the request, without credential.
            traffic: the kind of the request.
            timeout_s: time limit; a large body gets more. The deadline of the operation holds in any case.
            max_s: time limit of requests that belong to no operation.
        """
        if self._closed:
            raise self._closed_error()
        if request.content is not None:
            timeout_s += len(request.content) / SLOWEST_UPLOAD_BYTES_PER_S
        if is_deadline_passed():
            raise deadline_error()
        left_s = remaining_s()
        # An operation has one deadline; other requests have the time of their own policy.
        timeout_s = min(timeout_s, max_s if left_s == math.inf else left_s)
        if timeout_s <= 0:
            raise no_time_error(request, self._base_url)
        limits = self._limits[traffic]
        authorization, dialect = self._authorization, self._dialects.current
        credential = authorization.select_credential(request, dialect.config if dialect else None)
        secret = None if credential is None else await _obtain(credential.get())
        # The credential joins at the last moment: no request object that is kept holds it.
        response = await self._transport.send(authorization.sign(request, secret, limits), traffic, timeout_s)
        if credential is not None and secret is not None:
            newer = await _obtain(authorization.retry_credential(credential, secret, response))
            if newer is not None:
                response = await self._transport.send(authorization.sign(request, newer, limits), traffic, timeout_s)
        self.last_response_at = time.monotonic()
        check_size(request, limits, self._base_url + request.path, response.status, response.content)
        return authorization.redaction.redact_response(response)

    def reject_new(self) -> None:
        """Reject further requests with ClientClosedError."""
        self._closed = True

    async def close(self) -> None:
        """Stop renewing credentials, and close the transport."""
        self.reject_new()
        await self._authorization.close()
        await self._transport.close()


async def _obtain(work: Coroutine[Any, Any, T]) -> T:
    """Wait for a credential; mark the error if it cannot be obtained."""
    try:
        return await work
    except TinkerError as error:
        # The requests for the credential have been retried already; the request that needs it was not sent.
        error.from_credential_refresh = True
        raise
