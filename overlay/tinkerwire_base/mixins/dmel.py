"""Header of the tensor container of a DmelChunk.

The header holds 254 if all values are equal, a byte for the dtype (0 to 7), the number of dimensions, and each
dimension. Numbers are varints, least significant 7 bits first.
"""

from __future__ import annotations

from collections.abc import Iterator

SAME_VALUES = 254
DTYPES = range(8)


def container_length(data: bytes) -> int:
    """Return the first dimension of the tensor in a container.

    Raises:
        ValueError: the bytes are not a container, or its tensor has no dimensions.
    """
    head = iter(data[1:] if data[:1] == bytes([SAME_VALUES]) else data)
    try:
        dtype = next(head)
        if dtype not in DTYPES:
            raise ValueError(f"dmel: dtype must be from 0 to {max(DTYPES)}, got {dtype}")
        dimensions = [_varint(head) for _ in range(min(_varint(head), 1))]
    except StopIteration:
        raise ValueError(f"dmel: the {len(data)} bytes end within the header of the tensor") from None
    if not dimensions:
        raise ValueError("dmel: the tensor has no dimensions, so it has no length")
    return dimensions[0]


def _varint(head: Iterator[int]) -> int:
    found = 0
    for shift in range(0, 64, 7):
        byte = next(head)
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found
    raise ValueError("dmel: a dimension of the tensor takes more than 64 bits")
