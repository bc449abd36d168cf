"""Types of the official SDK's HTTP library, for annotations and for HTTP clients of the user.

No call of this package accepts or returns them: ``result(timeout)`` and RetryConfig limit the time, in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from typing_extensions import TypedDict

T = TypeVar("T")

PHASES = ("connect", "read", "write", "pool")
_UNSET: Any = object()


class Timeout(tuple[float | None, float | None, float | None, float | None]):
    """Time limits of the phases of an HTTP request, in seconds; None for any time.

    It is the tuple of four that httpx accepts as ``timeout``, as in ``httpx.AsyncClient(timeout=Timeout(60))``.

    Args:
        timeout: the limit of the phases that are not named, or all four as a tuple.
        connect: until the connection is made.
        read: until the next bytes are received.
        write: until the next bytes are sent.
        pool: until a connection is free.

    Raises:
        TypeError, ValueError: a limit is not a number of seconds, or a phase has no limit.
    """

    __slots__ = ()

    def __new__(
        cls,
        timeout: float | tuple[float | None, ...] | None = _UNSET,
        *,
        connect: float | None = _UNSET,
        read: float | None = _UNSET,
        write: float | None = _UNSET,
        pool: float | None = _UNSET,
    ) -> Timeout:
        named = (connect, read, write, pool)
        if isinstance(timeout, tuple):
            if len(timeout) != len(PHASES):
                raise ValueError(f"Timeout: a tuple must have the 4 values {', '.join(PHASES)}, got {len(timeout)}")
            base: tuple[Any, ...] = timeout
        else:
            base = (timeout,) * len(PHASES)
        limits = [default if limit is _UNSET else limit for default, limit in zip(base, named, strict=True)]
        for phase, seconds in zip(PHASES, limits, strict=True):
            if seconds is _UNSET:
                raise ValueError(f"Timeout: {phase} has no limit; set one for all phases, or for each of the four")
            if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
                raise TypeError(f"Timeout.{phase}: expected seconds or None, got {type(seconds).__name__}")
            if seconds is not None and not 0 <= seconds < math.inf:
                raise ValueError(f"Timeout.{phase} must be at least 0 s and finite, got {seconds}; None sets no limit")
        return super().__new__(cls, limits)

    @property
    def connect(self) -> float | None:
        """Seconds until the connection is made."""
        return self[0]

    @property
    def read(self) -> float | None:
        """Seconds until the next bytes are received."""
        return self[1]

    @property
    def write(self) -> float | None:
        """Seconds until the next bytes are sent."""
        return self[2]

    @property
    def pool(self) -> float | None:
        """Seconds until a connection is free."""
        return self[3]

    def as_dict(self) -> dict[str, float | None]:
        """Return the limits by phase."""
        return dict(zip(PHASES, self, strict=True))

    def __repr__(self) -> str:
        if len(set(self)) == 1:
            return f"Timeout(timeout={self.read})"
        return f"Timeout({', '.join(f'{phase}={seconds}' for phase, seconds in self.as_dict().items())})"


class RequestOptions(TypedDict, total=False):
    """Options of one HTTP request in the official SDK."""

    headers: Mapping[str, Any]
    max_retries: int
    timeout: float | Timeout | None
    params: Mapping[str, object]
    extra_json: Mapping[str, object]
    idempotency_key: str
    follow_redirects: bool


class APIResponse(Generic[T]):
    """A raw HTTP response of the official SDK, for annotations and ``isinstance``.

    It has no instances: calls return parsed results, and an APIStatusError has the response as ``response``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            f"{type(self).__name__} has no instances: calls return parsed results, and the response of an "
            "APIStatusError is its .response"
        )


class AsyncAPIResponse(APIResponse[T]):
    """A raw HTTP response of an asynchronous call of the official SDK."""
