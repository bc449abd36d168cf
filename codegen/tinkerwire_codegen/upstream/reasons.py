"""Where the contract differs from what the SDK's types say on purpose, and why; no drift, whatever the release."""

from __future__ import annotations

from ..facts import Difference

REASONS: dict[str, str] = {}
"""Differences as text, as facts.Difference writes them, with why."""


def is_meant(difference: Difference) -> bool:
    """Whether the contract differs here on purpose."""
    return str(difference) in REASONS
