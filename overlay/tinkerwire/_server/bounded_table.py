"""A table of bounded size that drops its oldest entries, so that memory stays bounded on a long-running server."""

from __future__ import annotations

import logging
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from tinkerwire._server.table_archive import TableArchive

log = logging.getLogger("tinkerwire._server")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ENTRY_BYTES = 512
"""Memory of an entry without its contents: its slot in the table, the key, and the objects that hold the value."""
RECENT_BYTES = 2**20
"""Memory of the newest entries of a table with an archive; older ones are on disk."""
ARCHIVED_AT_ONCE = 256
"""Entries that are moved to the archive in one transaction."""


class BoundedTable(Generic[K, V]):
    """Values by key; if they exceed the memory limit, the oldest are dropped, but never the newest.

    Not thread safe: callers hold a lock.

    Args:
        max_bytes: maximum memory of all entries.
        on_dropped: receives the key and the value of each entry that :meth:`drop` removes.
        to_archive: makes a value ready for an archive on disk, which holds all but the newest entries; it gets the
            key, too. The value must then be one that pickle accepts. None keeps all entries in memory.
    """

    def __init__(
        self,
        max_bytes: int,
        on_dropped: Callable[[K, V], object] = lambda key, value: None,
        to_archive: Callable[[K, V], V] | None = None,
    ) -> None:
        self._max_bytes = max_bytes
        self._on_dropped = on_dropped
        self._to_archive = to_archive
        self._archive: TableArchive[K, V] | None = None
        """Entries that are older than all of :attr:`_entries`."""
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._recent_bytes = 0
        self._archived_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Memory of all entries, as if they were all in memory."""
        return self._recent_bytes + self._archived_bytes

    def __len__(self) -> int:
        return len(self._entries) + (0 if self._archive is None else len(self._archive))

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        entry = self._entries.get(key)
        if entry is not None:
            return entry[0]
        archived = None if self._archive is None else self._archive.get(key)
        return None if archived is None else archived[1]

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, oldest first."""
        if self._archive is not None:
            yield from (key for key, _, _ in self._archive)
        yield from self._entries

    def values(self) -> Iterator[V]:
        """Iterate over the values, oldest first."""
        if self._archive is not None:
            yield from (value for _, value, _ in self._archive)
        yield from (value for value, _ in self._entries.values())

    def read_oldest(self) -> tuple[K, V] | None:
        """Return key and value of the oldest entry, or None."""
        archived = None if self._archive is None else self._archive.read_oldest()
        if archived is not None:
            return archived[0], archived[1]
        return next(((key, value) for key, (value, _) in self._entries.items()), None)

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
        self._recent_bytes += size
        while self.size_bytes > self._max_bytes and len(self) > 1:
            self.drop_oldest()
        if self._to_archive is not None and self._recent_bytes > RECENT_BYTES and len(self._entries) > 1:
            self._move_to_archive(self._to_archive)

    def pop(self, key: K) -> V | None:
        """Remove a key and return its value, or None."""
        if key in self._entries:
            value, size = self._entries.pop(key)
            self._recent_bytes -= size
            return value
        archived = None if self._archive is None else self._archive.pop(key)
        if archived is None:
            return None
        self._archived_bytes -= archived[2]
        return archived[1]

    def drop(self, key: K) -> None:
        """Remove an entry, if it exists, because of its age or for the memory of others."""
        value = self.pop(key)
        if value is not None:
            self._on_dropped(key, value)

    def drop_oldest(self) -> None:
        """Remove the oldest entry, if there is one, because of its age or for the memory of others."""
        oldest = self.read_oldest()
        if oldest is not None:
            self.drop(oldest[0])

    def _move_to_archive(self, to_archive: Callable[[K, V], V]) -> None:
        # Never the newest entry, whose caller may still use it.
        moved = list(islice(self._entries.items(), min(ARCHIVED_AT_ONCE, len(self._entries) - 1)))
        try:
            if self._archive is None:
                self._archive = TableArchive()
            self._archive.add((key, to_archive(key, value), size) for key, (value, size) in moved)
        except sqlite3.Error as error:
            # The entries of the archive can still be read.
            log.warning("results and keys stay in memory, because temporary files cannot be written: %s", error)
            self._to_archive = None
            return
        for key, (_, size) in moved:
            del self._entries[key]
            self._recent_bytes -= size
            self._archived_bytes += size


def compact(content: bytes) -> bytes:
    """Copy bytes that are to be kept: orjson returns short texts in 4 KB of memory each."""
    return bytes(memoryview(content))
