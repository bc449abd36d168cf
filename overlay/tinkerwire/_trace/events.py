"""The events of operations, one after the other in a list as in the file, as tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._futures.operation_trace import EVENT_VALUES

Event = tuple[Any, ...]
"""Name, time in seconds, and values."""
LENGTHS = {name: values + 2 for name, values in EVENT_VALUES.items()}


def split_events(items: Sequence[Any]) -> list[Event]:
    """Return the events of an operation.

    Raises:
        ValueError: a name is unknown, or the last event has too few values.
    """
    events: list[Event] = []
    position, end = 0, len(items)
    while position < end:
        length = LENGTHS.get(items[position])
        if length is None or position + length > end:
            raise ValueError(f"the event {items[position]!r:.40} is unknown or incomplete")
        events.append(tuple(items[position : position + length]))
        position += length
    return events


def join_events(events: Sequence[Event]) -> list[Any]:
    """Return events one after the other, as an operation holds them."""
    return [item for event in events for item in event]
