"""Validation of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinkerwire_generated import models


def validate_data(data: Sequence[models.Datum]) -> list[models.Datum]:
    """Return the datums of a batch as a list.

    Raises:
        TypeError: ``data`` is not a list of datums; the error names the position.
        ValueError: ``data`` is empty.
    """
    if isinstance(data, models.Datum):
        raise TypeError("data: expected a list of datums, got one Datum")
    if not isinstance(data, Iterable):
        raise TypeError(f"data: expected a list of datums, got {type(data).__name__}")
    datums = list(data)
    if not datums:
        raise ValueError("data must have at least 1 datum, got 0")
    for position, datum in enumerate(datums):
        if not isinstance(datum, models.Datum):
            raise TypeError(f"data[{position}]: expected a Datum, got {type(datum).__name__}")
    return datums
