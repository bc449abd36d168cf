"""Validation of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinkerwire_generated.models import Datum


def validate_data(data: Sequence[Datum]) -> list[Datum]:
    """Return the datums of a batch as a list.

    Raises:
        TypeError: ``data`` is not a list of datums; the error names the position.
        ValueError: ``data`` is empty.
    """
    if isinstance(data, Datum):
        raise TypeError("data: expected a list of datums, got one Datum")
    if not isinstance(data, Iterable):
        raise TypeError(f"data: expected a list of datums, got {type(data).__name__}")
    datums = list(data)
    if not datums:
        raise ValueError("data must have at least 1 datum, got 0")
    for position, datum in enumerate(datums):
        if not isinstance(datum, Datum):
            raise TypeError(f"data[{position}]: expected a Datum, got {type(datum).__name__}")
    return datums
