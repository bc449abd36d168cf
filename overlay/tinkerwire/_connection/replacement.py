"""Requests that a caller of Connection.send substitutes for a failed one, in place of a plain retry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

import attrs

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import TinkerError

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Replacement(Generic[T]):
    """The next request, and when it is due."""

    request: WireRequest
    read: Callable[[WireResponse], T]
    """Makes the result of a response to it, or raises its error."""
    error: TinkerError
    """Decides by the retry policy whether and when it is sent; raised if it is not."""
    is_due: bool = False
    """True to send it at once, regardless of the policy."""
    is_hopeless: bool = False
    """True not to send it, regardless of the policy."""


Replace: TypeAlias = Callable[[TinkerError], "Replacement[T] | None"]
"""Returns what follows an error; None for the same request, by the retry policy."""
