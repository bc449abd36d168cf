"""What one change between two contracts is, and how bad."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LEVELS = ("breaking", "risky", "safe")
NO_EXAMPLE: Any = object()
"""In the place of an example where none can be given."""


@dataclass
class Change:
    """One change: its level, direction, place and reason, and in which operations it shows.

    ``example`` is a JSON value that one side takes and the other refuses, at ``example_of`` in an operation.
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
        """What tells changes apart; the same in many operations is one change."""
        return self.level, self.direction, self.where, self.reason


def merge_changes(changes: list[Change]) -> list[Change]:
    """One change in the place of equal ones of many operations, the worst first."""
    found: dict[tuple[str, str, str, str], Change] = {}
    for change in changes:
        known = found.setdefault(change.key, change)
        if known is not change:
            known.operations += [each for each in change.operations if each not in known.operations]
    return sorted(found.values(), key=lambda each: (LEVELS.index(each.level), each.direction, each.where, each.reason))
