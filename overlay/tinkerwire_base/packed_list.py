"""Long lists of numbers, checked and copied in one pass.

Marshal writes an int of 32 bits, and nothing else, as the tag "i" and 4 bytes, and a float, and nothing else, as "g"
and 8 bytes. An item of another size would move the tags behind it: if all tags are in place and the length fits, every
item is such a number. Nothing else checks and copies in one pass; numpy takes twice the time, and accepts bool. Garbage
collection, which visits each item of a list or tuple, ignores the text.
"""

from __future__ import annotations

import marshal
from typing import Any

import attrs

from .lazy_numpy import Array, np
from .validators import INT32_MAX, INT32_MIN

MIN_PACKED_ITEMS = 64
"""Shorter lists take hardly more memory and time than packed ones."""
MARSHAL_VERSION = 2
"""The last format of marshal without references to earlier items."""
HEAD_BYTES = 5
"""Size of the tag and the length of a list."""
INT_BYTES, FLOAT_BYTES = 5, 9
"""Sizes of an int of 32 bits and of a float, with their tags."""
SMALL_ENDS = bytes([*range(0x47), *range(0x80, 0xC7)])
"""Last bytes, with sign and exponent, of floats whose magnitude is below 2**113; float32 holds them."""


@attrs.define(eq=False, repr=False)
class PackedList:
    """A list of ints of 32 bits, or of floats, that never changes."""

    dtype: str
    """The dtype of the array: int32, int64 or float64."""
    _text: bytes | None
    """The list in the format of marshal, until the array is made."""
    _array: Any = None
    _values: list[Any] | None = None

    def __len__(self) -> int:
        """Return the number of items."""
        text = self._text
        if text is None:
            return len(self._array)
        return (len(text) - HEAD_BYTES) // (FLOAT_BYTES if self.dtype == "float64" else INT_BYTES)

    def to_array(self) -> Array:
        """Return the numbers as an array that cannot be written to."""
        text = self._text
        if text is not None:
            code, item_bytes = ("<f8", FLOAT_BYTES) if self.dtype == "float64" else ("<i4", INT_BYTES)
            items = np.ndarray(len(self), code, text, offset=HEAD_BYTES + 1, strides=(item_bytes,))
            array = np.ascontiguousarray(items, self.dtype)
            # Copies of a model share the array.
            array.flags.writeable = False
            # The text last: another thread that finds none finds the array.
            self._array, self._text = array, None
        found: Array = self._array
        return found

    def to_list(self) -> list[Any]:
        """Return the numbers as a new list of Python's ints or floats."""
        text = self._text
        values: list[Any] = self._array.tolist() if text is None else marshal.loads(text)
        return values

    def read_values(self) -> list[Any]:
        """Return the numbers as a list that must not be changed; further calls return it again."""
        values = self._values
        if values is None:
            values = self._values = self.to_list()
        return values

    def copy(self) -> PackedList:
        """Return the same list in the form that takes the least memory: as its array alone, which it shares."""
        return PackedList(self.dtype, None, self.to_array())


def pack_ints(values: list[Any], dtype: str = "int32") -> PackedList | None:
    """Pack a list; None for a short one, or unless all items are ints of 32 bits."""
    # Most lists of other values have one at an end, which takes less time to find out than a copy of all.
    if not (len(values) >= MIN_PACKED_ITEMS and _is_small_int(values[0]) and _is_small_int(values[-1])):
        return None
    text = _dump(values, b"i", INT_BYTES)
    return None if text is None else PackedList(dtype, text)


def pack_floats(values: list[Any]) -> PackedList | None:
    """Pack a list; None for a short one, or unless all items are floats whose magnitude is below 2**113."""
    if not (len(values) >= MIN_PACKED_ITEMS and type(values[0]) is float and type(values[-1]) is float):
        return None
    text = _dump(values, b"g", FLOAT_BYTES)
    if text is None or text[HEAD_BYTES + FLOAT_BYTES - 1 :: FLOAT_BYTES].translate(None, SMALL_ENDS):
        return None
    return PackedList("float64", text)


def _is_small_int(value: Any) -> bool:
    return type(value) is int and INT32_MIN <= value <= INT32_MAX


def _dump(values: list[Any], tag: bytes, item_bytes: int) -> bytes | None:
    """Return a list in the format of marshal; None unless each item is a tag and a number."""
    count = len(values)
    try:
        text = marshal.dumps(values, MARSHAL_VERSION)
    except ValueError:
        return None
    is_packed = len(text) == HEAD_BYTES + count * item_bytes and text[HEAD_BYTES::item_bytes] == tag * count
    return text if is_packed else None
