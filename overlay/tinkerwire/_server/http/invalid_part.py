"""The start of an invalid JSON value, for errors: a body may have millions of wrong values.

The validator makes all errors at once, and each takes more than a kilobyte.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

PART_VALUES = 1000
"""Number of values up to which errors are made of all."""
MIN_ITEMS = 100
"""Items of a list, and keys of an object, that are kept; no object of the contract has as many keys."""
MAX_CUT_LEVELS = 64
"""Depth to which lists are cut; values of the contract lie far above."""


def find_invalid_part(is_valid: Callable[[Any], bool], value: Any) -> Any:
    """Return an invalid value with its lists cut, so that it has its first errors, and few others.

    All places in it are those in the whole value.

    Args:
        is_valid: the validator.
        value: an invalid value.
    """
    valid, size = 0, PART_VALUES
    part, is_whole = _cut(value, size)
    while not is_whole and is_valid(part):
        valid, size = size, size * 2
        part, is_whole = _cut(value, size)
    while size - valid > PART_VALUES:
        middle = (valid + size) // 2
        candidate, _ = _cut(value, middle)
        if is_valid(candidate):
            valid = middle
        else:
            part, size = candidate, middle
    return part


def _cut(value: Any, size: int) -> tuple[Any, bool]:
    """Return a value with about its first ``size`` values, and whether that is all of it."""
    cutter = _Cutter(size)
    return cutter.cut(value, MAX_CUT_LEVELS), cutter.is_whole


class _Cutter:
    def __init__(self, left: int) -> None:
        self._left = left
        self.is_whole = True

    def cut(self, value: Any, levels: int) -> Any:
        """Return a value without what is beyond the limit."""
        if not levels or not isinstance(value, (list, dict)):
            return value
        if isinstance(value, dict):
            keys = self._take(len(value))
            return {key: self.cut(item, levels - 1) for key, item in islice(value.items(), keys)}
        if value and not isinstance(value[0], (list, dict)):
            return value[: self._take(len(value))]
        items: list[Any] = []
        for item in value:
            if self._left <= 0 and items:
                self.is_whole = False
                break
            self._left -= 1
            items.append(self.cut(item, levels - 1))
        return items

    def _take(self, number: int) -> int:
        """Return how many of a number of values are kept."""
        kept = min(number, max(self._left, MIN_ITEMS))
        self._left -= kept
        self.is_whole = self.is_whole and kept == number
        return kept
