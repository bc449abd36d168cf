"""UNSET: a key that is absent, as against one that is explicitly null."""

from __future__ import annotations

from enum import Enum
from typing import Final


class UnsetType(Enum):
    """The type of :data:`UNSET` (an Enum, so that type checkers narrow ``value is UNSET``)."""

    UNSET = "UNSET"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"

    __str__ = __repr__


UNSET: Final = UnsetType.UNSET
