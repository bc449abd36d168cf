"""UNSET: the value of an absent key, as opposed to an explicit null."""

from __future__ import annotations

from enum import Enum
from typing import Final


class UnsetType(Enum):
    """The type of :data:`UNSET` (an Enum, so that type checkers narrow ``value is UNSET``)."""

    UNSET = "UNSET"

    def __bool__(self) -> bool:
        """Return False, as for a missing value."""
        return False

    def __repr__(self) -> str:
        """Return the name."""
        return "UNSET"

    __str__ = __repr__


UNSET: Final = UnsetType.UNSET
