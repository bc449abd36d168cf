"""The retry policy: limits, delays and the user's decision; the rules of what is retried stand in retry_rules."""

from __future__ import annotations

import inspect
import math
import random
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone

import attrs

from tinkerwire_base.call import ResponseLimits, SizeLimit
from tinkerwire_base.compat.dataclass_methods import DataclassMethods
from tinkerwire_base.errors import APIConnectionError, APIStatusError, TinkerError
from tinkerwire_base.short_repr import short_repr
from tinkerwire_base.validators import require_bool, require_int, require_number

from .._futures.deadline import Deadline
from .retry_rules import Decision, Loop, RetryRule, find_rule

MAX_REPEATS = 2
"""Resends of an operation that builds something after identical errors."""
BUILDING_PATHS = frozenset(
    f"/api/v1/{name}"
    for name in (
        "copy_weights",
        "create_custom_loss",
        "create_model",
        "create_sampling_session",
        "load_weights",
        "save_weights",
        "save_weights_external",
        "save_weights_for_sampler",
    )
)
"""Paths of operations that make the server build something."""
RetryIf = Callable[[TinkerError], bool | None]
"""Returns whether to retry after an error; None leaves the decision to the rules."""


@attrs.frozen
class RetryConfig(DataclassMethods):
    """The retry policy of a client, and the bound on its sampling requests in flight.

    The first eight settings are those of the official SDK, in its order; the others are keyword-only. The functions of
    ``dataclasses`` work on it, as on the official class. Times are in seconds; ``math.inf`` sets no limit.

    One operation makes at most ``max_attempts`` requests, all under one idempotency key.

    While no connection has ever reached the server (refused, unknown host, certificate not accepted, no connection
    in time), the address is most likely wrong, and an operation fails after about 6 s. To wait for a server that is
    still starting, set ``max_attempts``, ``max_elapsed`` or ``retry_if``: with any of them unlike its default the
    policy holds in full from the first request on.
    """

    max_connections: int | None = 1000
    """Maximum number of sampling requests in flight; None for any number."""
    progress_timeout: float = 7200
    """Time limit of one operation, from the call to its result; then RequestTimeoutError. All waits
    count: for earlier operations, the creation of the client, a place in flight, a connection, resends, the result."""
    retry_delay_base: float = 0.5
    """Delay before the first retry; doubles with each further retry."""
    retry_delay_max: float = 10.0
    """Maximum delay; a Retry-After header of the server may exceed it."""
    jitter_factor: float = 0.25
    """Maximum share by which delays are shortened at random, so that clients do not retry in step."""
    enable_retry_logic: bool = True
    """False sends every operation once."""
    enable_stuck_detection: bool = True
    """False ignores ``progress_timeout``: operations have no time limit."""
    retryable_exceptions: tuple[type[Exception], ...] = (APIConnectionError,)
    """Errors that are retried, besides responses with a retryable status. Without APIConnectionError, requests that get
    no response are not retried. A pickled client keeps them; a handle has the default."""
    max_attempts: int = attrs.field(default=10, kw_only=True)
    """Maximum requests per operation, including the first."""
    max_elapsed: float = attrs.field(default=300.0, kw_only=True)
    """Time after the first request in which retries may start."""
    retry_after_max: float = attrs.field(default=60.0, kw_only=True)
    """Maximum delay that a Retry-After header can set."""
    retry_if: RetryIf | None = attrs.field(default=None, kw_only=True)
    """Called first with every error of a request or a poll, on the client's thread. True retries within the limits
    above, False does not, None leaves the decision to the rules. A pickled client keeps it; a handle does not."""

    max_result_bytes: int | None = attrs.field(default=2**30, kw_only=True)
    """Maximum size of an operation's result, decompressed; beyond it ResponseTooLargeError. None for any size."""
    max_response_bytes: int | None = attrs.field(default=64 * 2**20, kw_only=True)
    """Maximum size of every other response, error responses included; None for any size."""

    def __attrs_post_init__(self) -> None:
        for name in ("max_result_bytes", "max_response_bytes"):
            size = getattr(self, name)
            if size is not None:
                require_int(f"RetryConfig.{name}", size)
                if size < 1:
                    raise ValueError(f"RetryConfig.{name} must be at least 1 byte, got {size}; None sets no limit")
        require_int("RetryConfig.max_attempts", self.max_attempts)
        if self.max_connections is not None:
            require_int("RetryConfig.max_connections", self.max_connections)
        require_bool("RetryConfig.enable_retry_logic", self.enable_retry_logic)
        require_bool("RetryConfig.enable_stuck_detection", self.enable_stuck_detection)
        _require_exceptions(self.retryable_exceptions)
        require_number("RetryConfig.jitter_factor", self.jitter_factor)
        if self.retry_if is not None and (not callable(self.retry_if) or inspect.iscoroutinefunction(self.retry_if)):
            shown = short_repr(self.retry_if)
            raise TypeError(f"RetryConfig.retry_if: expected a plain function of the error, got {shown}")
        if self.max_connections is not None and self.max_connections <= 0:
            raise ValueError(
                f"RetryConfig.max_connections must be at least 1, got {self.max_connections}; None sets no limit"
            )
        for name in ("progress_timeout", "retry_delay_base", "retry_delay_max", "max_elapsed", "retry_after_max"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124
                raise TypeError(f"RetryConfig.{name}: expected seconds, got {short_repr(value)}")
            if value < 0:
                raise ValueError(f"RetryConfig.{name} must be at least 0 s, got {short_repr(value)} s")
            if isinstance(value, int) and value > sys.float_info.max:
                raise ValueError(f"RetryConfig.{name}: {short_repr(value)} s is too large; math.inf sets no limit")
        if not 0 <= self.jitter_factor <= 1:
            raise ValueError(f"RetryConfig.jitter_factor must be between 0 and 1, got {self.jitter_factor}")
        if self.max_attempts < 1:
            raise ValueError(f"RetryConfig.max_attempts must be at least 1, got {self.max_attempts}")

    @property
    def time_limit(self) -> float:
        """Time limit of one operation in seconds: ``progress_timeout``, or infinity without stuck detection."""
        return self.progress_timeout if self.enable_stuck_detection else math.inf

    @property
    def has_default_limits(self) -> bool:
        """True if the settings that limit retries have their defaults."""
        names = ("max_attempts", "max_elapsed", "retry_if")
        return all(getattr(self, name) == getattr(attrs.fields(type(self)), name).default for name in names)

    def response_limits(self, *, is_result: bool) -> ResponseLimits:
        """Make the size limits of a request, whose response is a result or something smaller."""
        error_limit = _size_limit(self.max_response_bytes, "RetryConfig.max_response_bytes")
        result_limit = _size_limit(self.max_result_bytes, "RetryConfig.max_result_bytes") if is_result else error_limit
        return ResponseLimits(result=result_limit, error=error_limit)

    def deadline(self) -> Deadline:
        """Make the deadline of an operation that starts now."""
        return Deadline(self.time_limit, "RetryConfig.progress_timeout")

    def delay(self, attempt: int) -> float:
        """Return the delay after failed request number ``attempt`` (from 1), unless the server sets one."""
        longest = min(self.retry_delay_base * 2.0 ** min(attempt - 1, 60), self.retry_delay_max)
        return longest * (1 - self.jitter_factor * random.random())

    def wait_before_retry(
        self, error: TinkerError, attempt: int, elapsed: float, *, is_permanent: bool = False
    ) -> float | None:
        """Return the delay before the next request, or None if no request follows.

        Args:
            error: the error of the last request.
            attempt: the number of that request, from 1.
            elapsed: seconds since the first request.
            is_permanent: the result of :class:`RepeatedErrors`; ``retry_if`` decides even then.
        """
        if not self.enable_retry_logic or attempt >= self.max_attempts:
            return None
        if not self.should_retry(error, is_permanent=is_permanent):
            return None
        delay = self.delay_after(error, attempt)
        return None if elapsed + delay > min(self.max_elapsed, self.time_limit) else delay

    def should_retry(self, error: TinkerError, loop: Loop = Loop.REQUEST, *, is_permanent: bool = False) -> bool:
        """Return the decision of ``retry_if``, or that of the table of retry rules if it returns None."""
        decision = self.user_decision(error)
        if decision is not None:
            return decision
        return not is_permanent and self.find_rule(error, loop).decision is Decision.RETRY

    def find_rule(self, error: TinkerError, loop: Loop) -> RetryRule:
        """Return the row of the table of retry rules for an error in a loop."""
        return find_rule(loop, error, self.retryable_exceptions)

    def user_decision(self, error: TinkerError) -> bool | None:
        """Return the decision of ``retry_if``; None without it, and for errors of credentials."""
        if self.retry_if is None or error.from_credential_refresh:
            return None
        decision = self.retry_if(error)
        if decision is not None and not isinstance(decision, bool):
            raise TypeError(f"RetryConfig.retry_if must return True, False or None, got {short_repr(decision)}")
        return decision

    def delay_after(self, error: TinkerError, attempt: int) -> float:
        """Return the delay after failed request number ``attempt``: the server's, within its limit, or our own."""
        requested = server_retry_after(error)
        return self.delay(attempt) if requested is None else min(requested, self.retry_after_max)


def _size_limit(max_bytes: int | None, setting: str) -> SizeLimit | None:
    return None if max_bytes is None else SizeLimit(max_bytes=max_bytes, setting=setting)


class RepeatedErrors:
    """Counter of identical errors of one request, for operations that make the server build something.

    Each resend of such an operation may cost the server a model or a copy of weights. An error that looks permanent is
    not retried: the same status of 500 and above with the same body, without a header that requests a retry.
    """

    def __init__(self, path: str) -> None:
        self._is_counted = path in BUILDING_PATHS
        self._last: tuple[int, str] | None = None
        self._count = 0

    def is_permanent(self, error: TinkerError) -> bool:
        """Count an error; return True if the same error followed each of MAX_REPEATS resends."""
        if not self._is_counted:
            return False
        identity = None
        if isinstance(error, APIStatusError) and error.status_code >= 500:
            has_header = server_retry_after(error) is not None or "x-should-retry" in error.response.headers
            identity = None if has_header else (error.status_code, error.response.text)
        self._count = self._count + 1 if identity is not None and identity == self._last else 1
        self._last = identity
        return identity is not None and self._count > MAX_REPEATS


def _require_exceptions(value: object) -> None:
    if not isinstance(value, tuple):
        raise TypeError(f"RetryConfig.retryable_exceptions: expected a tuple of exceptions, got {short_repr(value)}")
    for item in value:
        if not (isinstance(item, type) and issubclass(item, Exception)):
            raise TypeError(f"RetryConfig.retryable_exceptions: expected exception classes, got {short_repr(item)}")


def server_retry_after(error: TinkerError) -> float | None:
    """Return the delay in seconds that an error response requests; None for 0, which would make a hot loop."""
    return (retry_after(error.response.headers) or None) if isinstance(error, APIStatusError) else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the delay in seconds of ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date), if any."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  (it imports half of the mail modules: 5 ms)

    try:
        then = parsedate_to_datetime(text)
        if then.tzinfo is None:
            then = then.replace(tzinfo=timezone.utc)
        return max(0.0, (then - datetime.now(timezone.utc)).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):  # invalid or extreme dates
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


SINGLE_ATTEMPT = RetryConfig(enable_retry_logic=False)
"""The policy of requests that are sent once."""
