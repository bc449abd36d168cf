"""Requests that a caller of Connection.send substitutes for a failed request, in place of a plain retry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

import attrs

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import TinkerError

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Replacement(Generic[T]):
    """The request that follows a failed one."""

    request: WireRequest
    read: Callable[[WireResponse], T]
    """Returns the result of a response, or raises its error."""
    error: TinkerError
    """The error by which the retry policy decides whether and when the request is sent; raised otherwise."""
    is_due: bool = False
    """True to send the request at once, regardless of the policy."""
    is_hopeless: bool = False
    """True to raise the error, regardless of the policy."""


Replace: TypeAlias = Callable[[TinkerError], "Replacement[T] | None"]
"""Returns the replacement after an error; None to resend the same request by the retry policy."""
