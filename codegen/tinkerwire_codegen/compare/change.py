"""One change between two contracts, with its level."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LEVELS = ("breaking", "risky", "safe")
NO_EXAMPLE: Any = object()
"""In the place of an example where none can be given."""


@dataclass
class Change:
    """One change: its level, direction, place and reason, and the operations that it affects.

    ``example`` is a JSON value that one contract accepts and the other rejects, at ``example_of`` in an operation.
    """

    level: str
    direction: str
    where: str
    reason: str
    operations: list[str] = field(default_factory=list)
    example: Any = NO_EXAMPLE
    example_of: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what identifies the change; the same change in many operations has one key."""
        return self.level, self.direction, self.where, self.reason


def merge_changes(changes: list[Change]) -> list[Change]:
    """Merge equal changes of several operations into one, and sort by severity."""
    merged: dict[tuple[str, str, str, str], Change] = {}
    for change in changes:
        existing = merged.setdefault(change.key, change)
        if existing is not change:
            existing.operations += [name for name in change.operations if name not in existing.operations]
    return sorted(
        merged.values(), key=lambda change: (LEVELS.index(change.level), change.direction, change.where, change.reason)
    )
