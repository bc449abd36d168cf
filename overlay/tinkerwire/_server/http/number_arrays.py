"""Lists of numbers in the JSON value of a batch as arrays, without a step for each number after parsing.

A batch has hundreds of thousands of numbers, and little else. Each step over Python's numbers, such as a check of their
types, takes as long as a third of parsing them; pysimdjson, if it is installed, makes no such numbers at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.tensors import MIN_PACKED_TOKENS, pack_floats, pack_tokens

if TYPE_CHECKING:
    import simdjson
else:
    try:
        import simdjson
    except ImportError:  # it has no wheels for every Python
        simdjson = None

MAX_NUMBER_LEVELS = 16
"""Maximum depth of the numbers of a batch; those of the contract lie half as deep."""
MAX_KEYS = 100
"""Maximum number of keys of an object: pysimdjson goes through them for each. No object of the contract has more."""
MAX_LISTS = 2**16
"""Maximum number of lists that pysimdjson reads; orjson takes as long for that many."""
MAX_EXACT_INTEGER = 2.0**53
"""Integers up to this one are exact as float64."""


class NumberList(NamedTuple):
    """The array of a list of numbers, and the place of the list in a JSON value."""

    parent: dict[str, Any]
    key: str
    array: Array

    def put_ends(self) -> None:
        """Put the smallest and the largest number there, which fit a schema if all numbers do."""
        self.parent[self.key] = [self.array.min().item(), self.array.max().item()]

    def put_array(self) -> None:
        """Put the array there."""
        self.parent[self.key] = self.array


def parse_number_lists(content: bytes, parse: Callable[[bytes], Any]) -> tuple[Any, list[NumberList]]:
    """Return a JSON value, and the token lists and tensors in it that an array of their dtype holds.

    A list stays a list if it is short, or needs a closer look: mixed types, integers beyond 32 bits, or floats beyond
    float32. The value at the place of an array is undefined until one of its methods has put one there.

    Args:
        content: the JSON text.
        parse: parses what pysimdjson cannot, and raises the error of a text that is not JSON.
    """
    # pysimdjson accepts a mark of byte order before the value.
    if simdjson is not None and content[:1] == b"{":
        with suppress(ValueError, KeyError, RuntimeError):
            reader = _ArrayReader()
            value = reader.read(simdjson.Parser().parse(content), MAX_NUMBER_LEVELS)
            if reader.lists_read == content.count(b"["):
                return value, reader.found
    value = parse(content)
    return value, list(_find_number_lists(value, MAX_NUMBER_LEVELS))


class _ArrayReader:
    """Reader of values of pysimdjson."""

    def __init__(self) -> None:
        self.found: list[NumberList] = []
        self.lists_read = 0
        """Number of lists; pysimdjson flattens lists in a list of numbers, which are then missing here."""

    def read(self, value: Any, levels: int) -> Any:
        """Return a value as Python's objects, with its long lists of numbers in :attr:`found`.

        Raises:
            ValueError, KeyError: a key is there twice, or the value has too many keys, lists or levels.
        """
        if not levels or self.lists_read > MAX_LISTS:
            raise ValueError
        if isinstance(value, simdjson.Array):
            self.lists_read += 1
            return [self.read(item, levels - 1) for item in value]
        if not isinstance(value, simdjson.Object):
            return value
        if len(value) > MAX_KEYS:
            raise ValueError
        result: dict[str, Any] = {}
        long_lists: list[tuple[str, Any]] = []
        # Not `items`, which converts all below.
        for key in value:
            item = value[key]
            if isinstance(item, simdjson.Array) and len(item) >= MIN_PACKED_TOKENS and key in ("tokens", "data"):
                long_lists.append((key, item))
                result[key] = None
            else:
                result[key] = self.read(item, levels - 1)
        if len(result) != len(value):
            raise ValueError
        for key, item in long_lists:
            array = _read_array(item, "int32" if key == "tokens" else result.get("dtype"))
            if array is None:
                result[key] = self.read(item, levels - 1)
            else:
                self.lists_read += 1
                self.found.append(NumberList(result, key, array))
        return result


def _read_array(numbers: Any, dtype: Any) -> Array | None:
    """Return a list of pysimdjson as an array; None unless all its items are numbers of the dtype."""
    try:
        if dtype in ("int32", "int64"):
            integers = np.frombuffer(numbers.as_buffer(of_type="i"), np.int64)
            limits = np.iinfo(np.int32)
            return integers.astype(dtype) if limits.min <= integers.min() and integers.max() <= limits.max else None
        if dtype == "float32":
            floats = np.frombuffer(numbers.as_buffer(of_type="d"), np.float64)
            # Larger ones may have been integers, which are rounded only once in a list.
            return floats.astype(np.float32) if np.abs(floats).max() <= MAX_EXACT_INTEGER else None
    except (TypeError, ValueError):
        pass
    return None


def _find_number_lists(value: Any, levels: int) -> Iterator[NumberList]:
    if not levels:
        return
    if isinstance(value, list):
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _find_number_lists(item, levels - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict) or (isinstance(item, list) and item and isinstance(item[0], (dict, list))):
                yield from _find_number_lists(item, levels - 1)
            elif isinstance(item, list):
                array = _to_array(item, value.get("dtype") if key == "data" else None, key)
                if array is not None:
                    yield NumberList(value, key, array)


def _to_array(numbers: list[Any], dtype: Any, key: str) -> Array | None:
    if key == "tokens":
        return pack_tokens(numbers)
    if dtype == "int64":
        integers = pack_tokens(numbers)
        return None if integers is None else integers.astype(np.int64)
    if dtype == "float32":
        return pack_floats(numbers)
    return None
