"""What all clients of one server share: address, credential, transport, converter, and the one retry loop."""

from __future__ import annotations

import asyncio
import platform
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from tinkerwire_base.call import Call, WireRequest, WireResponse
from tinkerwire_base.converter import Converter, dialect_error, is_in
from tinkerwire_base.errors import ClientClosedError, TinkerError
from tinkerwire_generated.times import FIELD_TIMES, OPERATION_TIMES, PARAMETER_TIMES

from .auth import Secret
from .backpressure import InFlightLimit, Traffic
from .retry import RetryConfig
from .transport import Transport
from .version import __version__

T = TypeVar("T")
REQUEST_TIMEOUT_S = 60.0


@attrs.frozen(kw_only=True)
class Submission:
    """Headers and key of one operation: the same for every time its request is sent."""

    key: str = attrs.field(factory=lambda: f"tinkerwire-{uuid.uuid4()}")
    headers: Mapping[str, str] = attrs.field(factory=dict)


class Connection:
    """Sends calls to one server in one wire version. Its coroutines run on the loop thread only."""

    def __init__(
        self,
        base_url: str,
        api_key: Secret | None,
        transport: Transport,
        wire_version: str,
        retry: RetryConfig,
        headers: Mapping[str, str],
    ) -> None:
        self.base_url = base_url
        self.wire_version = wire_version
        self.retry = retry
        self.converter = Converter(wire_version, FIELD_TIMES)
        self.sampling_limit = InFlightLimit(retry.max_connections)
        self.closed = False
        self._transport = transport
        self._key_header = {} if api_key is None else {"x-api-key": api_key}
        self._headers = {
            "user-agent": f"tinkerwire/{__version__} Python/{platform.python_version()}",
            **{name.lower(): value for name, value in headers.items()},
        }

    async def call(
        self,
        call: Call[T],
        traffic: Traffic,
        *,
        retry: RetryConfig | None = None,
        submission: Submission | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
        on_fault: Callable[[TinkerError, float], Any] | None = None,
    ) -> T:
        """Send a call until it succeeds or the policy gives up, always under one idempotency key.

        Args:
            retry: the policy; the client's own when None.
            on_fault: hears of each fault that is going to be retried, and of the wait before it, in seconds.

        Raises:
            DialectError: the wire version in use does not have the call or a field of it; nothing was sent.
            TinkerError: what the last attempt met.
        """
        policy = retry or self.retry
        request = self.encode(call, submission or Submission())
        started, attempt = time.monotonic(), 0
        while True:
            attempt += 1
            try:
                return self.parse(call, await self.exchange(request, traffic, timeout_s))
            except TinkerError as fault:
                wait = policy.wait_before_retry(fault, attempt, time.monotonic() - started)
                if wait is None:
                    raise
                if on_fault is not None:
                    on_fault(fault, wait)
                await asyncio.sleep(wait)

    def encode(self, call: Call[Any], submission: Submission) -> WireRequest:
        """The bytes of a call in the wire version in use, with all headers but the credential."""
        self._check_dialect(call)
        request = call.encode(self.converter)
        headers = {**self._headers, **request.headers, **submission.headers}
        if request.method != "GET":
            headers["x-idempotency-key"] = submission.key
        return attrs.evolve(request, headers=headers)

    def parse(self, call: Call[T], response: WireResponse) -> T:
        """The result that an answer holds, or its error."""
        return call.parse(response, self.converter, self.base_url + call.operation.path)

    async def exchange(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """Send once and bring the answer, whatever its status."""
        if self.closed:
            raise ClientClosedError("the client is closed; make a new ServiceClient")
        if self._key_header:
            # The credential joins at the last moment, so that no request object ever shows it.
            secrets = {name: secret.reveal() for name, secret in self._key_header.items()}
            request = attrs.evolve(request, headers={**request.headers, **secrets})
        return await self._transport.send(request, traffic, timeout_s)

    async def close(self) -> None:
        """Close the transport; later calls raise ClientClosedError."""
        self.closed = True
        await self._transport.close()

    def has_operation(self, name: str) -> bool:
        """Whether the wire version in use has this call."""
        span = OPERATION_TIMES.get(name)
        return span is None or is_in(self.wire_version, *span)

    def has_field(self, owner: str, name: str) -> bool:
        """Whether the wire version in use has this field."""
        span = FIELD_TIMES.get(owner, {}).get(name)
        return span is None or is_in(self.wire_version, *span)

    def _check_dialect(self, call: Call[Any]) -> None:
        name = call.operation.name
        if not self.has_operation(name):
            raise dialect_error(f"the call {name}", self.wire_version, *OPERATION_TIMES[name])
        for parameter, value in call.query.items():
            span = PARAMETER_TIMES.get(name, {}).get(parameter)
            if span is not None and value is not None and not is_in(self.wire_version, *span):
                raise dialect_error(f"{name}'s parameter {parameter}", self.wire_version, *span)
