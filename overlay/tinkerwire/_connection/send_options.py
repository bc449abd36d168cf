"""Options of sending a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from tinkerwire_base.errors import TinkerError

from .._transport.backpressure import Traffic
from .replacement import Replace
from .retry import RetryConfig

T = TypeVar("T")
OnRetry: TypeAlias = Callable[[TinkerError, float], Any]


@attrs.frozen
class SendOptions(Generic[T]):
    """Options of sending a request; see :meth:`Connection.send`."""

    traffic: Traffic
    policy: RetryConfig
    timeout_s: float
    raise_immediately: tuple[type[TinkerError], ...]
    on_retry: OnRetry | None
    replace: Replace[T] | None
