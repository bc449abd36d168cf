"""The ways in which a test ends early: a violation, a blocked test, a requirement that does not apply."""

from __future__ import annotations

from collections.abc import Sequence

from .exchange import Exchange


class Violation(Exception):
    """The server does not meet the requirement.

    Args:
        expected: what the requirement asks for.
        received: what the server did.
        exchange: the request and the response that show it; None if no single one does.
        parts: what does not work, and why, where a requirement is about several things.
    """

    def __init__(
        self,
        expected: str,
        received: str,
        exchange: Exchange | None = None,
        parts: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(f"expected {expected}, got {received}")
        self.expected, self.received, self.exchange, self.parts = expected, received, exchange, tuple(parts)


class NotApplicable(Exception):
    """The server does not offer what the requirement is about; the text names what it lacks."""


class Blocked(Exception):
    """The test could not be prepared, and its requirement remains unknown.

    Args:
        reason: what failed.
        exchange: the request and the response that show it.
    """

    def __init__(self, reason: str, exchange: Exchange | None = None) -> None:
        super().__init__(reason)
        self.exchange = exchange


class ServerLost(Exception):
    """The server does not accept connections any more."""


def expect(condition: bool, expected: str, received: object, exchange: Exchange | None = None) -> None:
    """Raise Violation unless a condition holds.

    Args:
        condition: what has to be true.
        expected: the expectation in words, such as ``the same result``.
        received: what came instead.
        exchange: the request and response that show it.
    """
    if not condition:
        raise Violation(expected, str(received), exchange)
