"""Types of the official SDK's HTTP library, for annotations and for HTTP clients of one's own.

No call of this package takes or gives one: ``result(timeout)`` and RetryConfig bound the time, in seconds.
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
    """How long each phase of an HTTP request may take, in seconds; None for any time.

    It is the tuple of the four that httpx takes as ``timeout``, as in ``httpx.AsyncClient(timeout=Timeout(60))``.

    Args:
        timeout: of the phases that are not named, or all four as a tuple.
        connect: until there is a connection.
        read: until the next bytes are here.
        write: until the next bytes are gone.
        pool: until a connection is free.

    Raises:
        TypeError, ValueError: no time, or a phase without one.
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
                raise ValueError(f"Timeout: a tuple has the four of {', '.join(PHASES)}, this one {len(timeout)}")
            base: tuple[Any, ...] = timeout
        else:
            base = (timeout,) * len(PHASES)
        found = [one if each is _UNSET else each for one, each in zip(base, named, strict=True)]
        for phase, seconds in zip(PHASES, found, strict=True):
            if seconds is _UNSET:
                raise ValueError(f"Timeout: no time for {phase}; give one for all phases, or for each of the four")
            if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
                raise TypeError(f"Timeout.{phase}: expected seconds or None, got {type(seconds).__name__}")
            if seconds is not None and not 0 <= seconds < math.inf:
                raise ValueError(f"Timeout.{phase}: {seconds} is not a time in seconds; None is any time")
        return super().__new__(cls, found)

    @property
    def connect(self) -> float | None:
        """Seconds until there is a connection."""
        return self[0]

    @property
    def read(self) -> float | None:
        """Seconds until the next bytes are here."""
        return self[1]

    @property
    def write(self) -> float | None:
        """Seconds until the next bytes are gone."""
        return self[2]

    @property
    def pool(self) -> float | None:
        """Seconds until a connection is free."""
        return self[3]

    def as_dict(self) -> dict[str, float | None]:
        """The four by name."""
        return dict(zip(PHASES, self, strict=True))

    def __repr__(self) -> str:
        if len(set(self)) == 1:
            return f"Timeout(timeout={self.read})"
        return f"Timeout({', '.join(f'{phase}={seconds}' for phase, seconds in self.as_dict().items())})"


class RequestOptions(TypedDict, total=False):
    """What the official SDK's inside says of one HTTP request."""

    headers: Mapping[str, Any]
    max_retries: int
    timeout: float | Timeout | None
    params: Mapping[str, object]
    extra_json: Mapping[str, object]
    idempotency_key: str
    follow_redirects: bool


class APIResponse(Generic[T]):
    """A raw HTTP response of the official SDK, for annotations and ``isinstance``.

    There are none here: calls give parsed results, and an APIStatusError has the response as ``response``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            f"{type(self).__name__} has no instances here: calls give parsed results, and the response of an "
            "APIStatusError is its .response"
        )


class AsyncAPIResponse(APIResponse[T]):
    """The same of asynchronous calls."""
