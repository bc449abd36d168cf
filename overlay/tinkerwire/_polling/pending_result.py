"""A result that the server has not given yet: its future, and the type to read it as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import attrs

from .._transport.backpressure import Traffic
from .._wire.server_futures import ImmediateResult, Submission

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class PendingResult(Generic[T]):
    """A future of the server, and the type of its result."""

    submission: Submission
    """The response to the operation, which may already contain the result."""
    request_type: str
    """Name of the operation in the server's metrics: ``Sample``, ``ForwardBackward`` ..."""
    result_type: type[T] | None
    """None for a result without content."""
    traffic: Traffic
    is_repeatable: bool = False
    """True if the caller requests another result when the server has lost this one."""
    null_defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """Values for keys of the result that some servers omit or send as null."""

    @property
    def request_id(self) -> str:
        """Id of the future; empty if the response already contains the result."""
        return "" if isinstance(self.submission, ImmediateResult) else self.submission.request_id

    @property
    def name(self) -> str:
        """Name of the request in error messages."""
        return f"{self.request_type} {self.request_id}".rstrip()
