"""A table of bounded size that drops its oldest entries, so that memory stays bounded on a long-running server."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ENTRY_BYTES = 512
"""Memory of an entry without its contents: its slot in the table, the key, and the objects that hold the value."""


class BoundedTable(Generic[K, V]):
    """Values by key; if they exceed the memory limit, the oldest are dropped, but never the newest.

    Not thread safe: callers hold a lock.

    Args:
        max_bytes: maximum memory of all entries.
        on_dropped: receives the key and the value of each entry that :meth:`drop` removes.
    """

    def __init__(self, max_bytes: int, on_dropped: Callable[[K, V], object] = lambda key, value: None) -> None:
        self._max_bytes = max_bytes
        self._on_dropped = on_dropped
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size_bytes = 0
        """Memory of all entries."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def values(self) -> Iterator[V]:
        """Iterate over the values, oldest first."""
        return (value for value, _ in self._entries.values())

    def put(self, key: K, value: V, content_bytes: int = 0) -> None:
        """Add a value as the newest.

        Args:
            key: the key; an earlier value of the key is replaced.
            value: the value.
            content_bytes: memory of its contents, in addition to :data:`ENTRY_BYTES`.
        """
        self.pop(key)
        size = ENTRY_BYTES + content_bytes
        self._entries[key] = value, size
        self.size_bytes += size
        while self.size_bytes > self._max_bytes and len(self._entries) > 1:
            self.drop(next(iter(self._entries)))

    def pop(self, key: K) -> V | None:
        """Remove a key and return its value, or None."""
        value, size = self._entries.pop(key, (None, 0))
        self.size_bytes -= size
        return value

    def drop(self, key: K) -> None:
        """Remove an entry that exists, because of its age or for the memory of others."""
        value, size = self._entries.pop(key)
        self.size_bytes -= size
        self._on_dropped(key, value)


def compact(content: bytes) -> bytes:
    """Copy bytes that are to be kept: orjson returns short texts in 4 KB of memory each."""
    return bytes(memoryview(content))
