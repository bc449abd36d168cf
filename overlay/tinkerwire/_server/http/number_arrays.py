"""Lists of numbers in the JSON value of a batch as arrays, without a step for each number after parsing.

A batch has hundreds of thousands of numbers, and little else. Each step over Python's numbers, such as a check of their
types, takes as long as a third of parsing them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.tensors import pack_floats, pack_tokens

MAX_NUMBER_LEVELS = 16
"""Maximum depth of the numbers of a batch; those of the contract lie half as deep."""


class NumberList(NamedTuple):
    """A list of numbers in an object of a JSON value, and its array."""

    parent: dict[str, Any]
    key: str
    numbers: list[Any]
    array: Array

    def put_ends(self) -> None:
        """Replace the list by its smallest and its largest number, which fit a schema if all numbers do."""
        self.parent[self.key] = [self.array.min().item(), self.array.max().item()]

    def put_array(self) -> None:
        """Replace the list by its array."""
        self.parent[self.key] = self.array

    def put_numbers(self) -> None:
        """Put the list back."""
        self.parent[self.key] = self.numbers


def find_number_lists(value: Any, levels: int = MAX_NUMBER_LEVELS) -> Iterator[NumberList]:
    """Yield the token lists and the tensors of a JSON value that an array of their dtype holds.

    A list stays a list if it is short, or needs a closer look: mixed types, integers beyond 32 bits, or floats beyond
    float32.
    """
    if not levels:
        return
    if isinstance(value, list):
        for item in value:
            if isinstance(item, (dict, list)):
                yield from find_number_lists(item, levels - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict) or (isinstance(item, list) and item and isinstance(item[0], (dict, list))):
                yield from find_number_lists(item, levels - 1)
            elif isinstance(item, list):
                array = _to_array(item, value.get("dtype") if key == "data" else None, key)
                if array is not None:
                    yield NumberList(value, key, item, array)


def _to_array(numbers: list[Any], dtype: Any, key: str) -> Array | None:
    if key == "tokens":
        return pack_tokens(numbers)
    if dtype == "int64":
        integers = pack_tokens(numbers)
        return None if integers is None else integers.astype(np.int64)
    if dtype == "float32":
        return pack_floats(numbers)
    return None
