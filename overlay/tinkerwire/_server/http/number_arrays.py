"""Lists of numbers in the JSON value of a batch as arrays, without a step for each number after parsing.

A batch has hundreds of thousands of numbers, and little else. Each step over Python's numbers, such as a check of their
types, takes as long as a third of parsing them; pysimdjson, if it is installed, makes no such numbers at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.packed_list import MIN_PACKED_ITEMS, pack_floats, pack_ints

if TYPE_CHECKING:
    import simdjson
else:
    try:
        import simdjson
    except (ImportError, RuntimeError):  # it has no wheels for every Python, and raises either without its binary
        simdjson = None

MAX_NUMBER_LEVELS = 16
"""Maximum depth of the numbers of a batch; those of the contract lie half as deep."""
MAX_BYTES = 2**25
"""Size of a text up to which pysimdjson reads it: it takes 16 bytes for each number, beside the arrays."""
MAX_KEYS = 100
"""Maximum number of keys of an object that pysimdjson reads: a lookup takes time in proportion to it."""
MIN_BYTES_PER_CONTAINER = 512
"""Size of a text for each of its lists and objects from which pysimdjson takes less time than orjson."""
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

    A list stays a list if it is short, or needs a closer look, such as integers beyond 32 bits or values that are not
    numbers. The value at the place of an array is undefined until one of its methods has put one there.

    Args:
        content: the JSON text.
        parse: parses what pysimdjson cannot, and raises the error of a text that is not JSON.
    """
    read = None if simdjson is None else _read_by_simdjson(content)
    if read is not None:
        return read
    value = parse(content)
    return value, list(_find_number_lists(value, MAX_NUMBER_LEVELS))


def _read_by_simdjson(content: bytes) -> tuple[Any, list[NumberList]] | None:
    """Return what :func:`parse_number_lists` does; None for a text that orjson has to read."""
    lists = content.count(b"[")
    if len(content) > MAX_BYTES or (lists + content.count(b"{")) * MIN_BYTES_PER_CONTAINER > len(content):
        return None
    # pysimdjson accepts a byte order mark, and cuts the name of a lookup at a NUL, which only an escape can hold.
    if not content.startswith(b"{") or b"\\" in content:
        return None
    reader = _ArrayReader()
    try:
        value = reader.read(simdjson.Parser().parse(content), MAX_NUMBER_LEVELS)
    except (ValueError, RuntimeError):
        # orjson reports what is wrong, and takes integers of any length.
        return None
    # pysimdjson flattens lists in a list of numbers.
    return (value, reader.found) if reader.lists_read == lists else None


class _ArrayReader:
    """Reader of values of pysimdjson."""

    def __init__(self) -> None:
        self.found: list[NumberList] = []
        self.lists_read = 0
        """Number of lists read so far, without those inside a list of numbers."""

    def read(self, value: Any, levels: int) -> Any:
        """Return a value as Python's objects, with its long lists of numbers in :attr:`found`.

        Raises:
            ValueError: a key occurs twice, or the value has too many keys or levels.
        """
        if not levels:
            raise ValueError
        if isinstance(value, simdjson.Array):
            return self._read_list(value, levels)
        if not isinstance(value, simdjson.Object):
            return value
        keys = list(value)
        if len(keys) > MAX_KEYS or len(set(keys)) != len(keys):
            raise ValueError
        result: dict[str, Any] = {}
        long_lists: list[tuple[str, Any]] = []
        # Not `items`, which converts all below.
        for key in keys:
            item = value[key]
            if isinstance(item, simdjson.Array) and len(item) >= MIN_PACKED_ITEMS and key in ("tokens", "data"):
                long_lists.append((key, item))
                result[key] = None
            else:
                result[key] = self.read(item, levels - 1)
        for key, item in long_lists:
            array = _read_array(item, "int32" if key == "tokens" else result.get("dtype"))
            if array is None:
                result[key] = self._read_list(item, levels - 1)
            else:
                self.lists_read += 1
                self.found.append(NumberList(result, key, array))
        return result

    def _read_list(self, values: Any, levels: int) -> list[Any]:
        self.lists_read += 1
        has_containers = len(values) > 0 and isinstance(values[0], (simdjson.Array, simdjson.Object))
        if has_containers:
            return [self.read(item, levels - 1) for item in values]
        numbers: list[Any] = values.as_list()
        return numbers


def _read_array(numbers: Any, dtype: Any) -> Array | None:
    """Return a list of pysimdjson as an array; None unless all its items are numbers of the dtype."""
    try:
        if dtype in ("int32", "int64"):
            integers = np.frombuffer(numbers.as_buffer(of_type="i"), np.int64)
            limits = np.iinfo(np.int32)
            return integers.astype(dtype) if limits.min <= integers.min() and integers.max() <= limits.max else None
        if dtype == "float32":
            floats = np.frombuffer(numbers.as_buffer(of_type="d"), np.float64)
            # Larger integers are not exact as float64, and would be rounded twice.
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
    if key == "tokens" or dtype == "int64":
        integers = pack_ints(numbers, "int32" if key == "tokens" else "int64")
        return None if integers is None else integers.to_array()
    if dtype != "float32":
        return None
    floats = pack_floats(numbers)
    if floats is None:
        integers = pack_ints(numbers)
        return None if integers is None else integers.to_array().astype(np.float32)
    return floats.to_array().astype(np.float32)
