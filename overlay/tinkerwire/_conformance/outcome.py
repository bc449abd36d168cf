"""The outcome of the test of one requirement."""

from __future__ import annotations

import enum

import attrs

from .exchange import Exchange
from .requirement import Requirement


class Status(enum.Enum):
    """Ways in which a test ends."""

    PASSED = "passed"
    FAILED = "failed"
    BLOCKED = "blocked"
    """Something that the test needs failed, so the requirement remains unknown."""
    SKIPPED = "skipped"
    """The requirement does not apply to the wire version, or the server lacks an optional operation."""
    NOT_RUN = "not run"
    """The run ended before."""
    ERROR = "error"
    """The kit itself failed; the requirement remains unknown."""


@attrs.frozen(kw_only=True)
class Outcome:
    """The outcome of one requirement."""

    requirement: Requirement
    status: Status
    seconds: float = 0.0
    expected: str = ""
    """Expectation of a failed test."""
    received: str = ""
    """Behaviour of the server in place of it."""
    parts: tuple[tuple[str, str], ...] = ()
    """Things that do not work, each with the reason, where a failed requirement is about several."""
    reason: str = ""
    """Reason for a test that was blocked, skipped or not run."""
    exchange: Exchange | None = attrs.field(default=None, repr=False)
    """The request and response that show a failure."""
    submission: Exchange | None = attrs.field(default=None, repr=False)
    """The request that submitted the work, if ``exchange`` is a poll for its result."""
