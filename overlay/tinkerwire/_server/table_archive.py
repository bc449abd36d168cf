"""An archive of table entries on disk, so that entries which are rarely read take no memory."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
CACHE_KIB = 256
"""Memory that SQLite takes for the pages of an archive."""


class TableArchive(Generic[K, V]):
    """Entries of a table in the order in which they were added, in a temporary file.

    The file has no name on POSIX systems, and ends with the process. Not thread safe: callers hold a lock.
    """

    def __init__(self) -> None:
        # An empty path is a private file in the folder of SQLite for temporary files, such as TMPDIR.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for statement in (
            f"PRAGMA cache_size = -{CACHE_KIB}",
            "PRAGMA journal_mode = MEMORY",
            "PRAGMA synchronous = OFF",
            "CREATE TABLE entries (position INTEGER PRIMARY KEY, key TEXT UNIQUE, content BLOB)",
        ):
            self._connection.execute(statement).fetchall()
        self._count = 0
        self._oldest: tuple[K, V, int] | None = None

    def __len__(self) -> int:
        return self._count

    def add(self, entries: Iterable[tuple[K, V, int]]) -> None:
        """Add entries as the newest: key, value and size.

        Raises:
            sqlite3.Error: none was added, such as on a full disk.
        """
        rows = [(repr(entry[0]), pickle.dumps(entry)) for entry in entries]
        try:
            self._connection.execute("BEGIN")
            self._connection.executemany("INSERT INTO entries (key, content) VALUES (?, ?)", rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise
        self._count += len(rows)

    def get(self, key: K) -> tuple[K, V, int] | None:
        """Return the entry of a key, or None."""
        return self._read("SELECT content FROM entries WHERE key = ?", repr(key)) if self._count else None

    def pop(self, key: K) -> tuple[K, V, int] | None:
        """Remove the entry of a key and return it, or None."""
        entry = self.get(key)
        if entry is not None:
            self._connection.execute("DELETE FROM entries WHERE key = ?", (repr(key),))
            self._count -= 1
            if self._oldest is not None and self._oldest[0] == key:
                self._oldest = None
        return entry

    def read_oldest(self) -> tuple[K, V, int] | None:
        """Return the oldest entry, or None."""
        if self._oldest is None and self._count:
            self._oldest = self._read("SELECT content FROM entries ORDER BY position LIMIT 1")
        return self._oldest

    def __iter__(self) -> Iterator[tuple[K, V, int]]:
        for (content,) in self._connection.execute("SELECT content FROM entries ORDER BY position").fetchall():
            yield pickle.loads(content)

    def _read(self, statement: str, *values: str) -> tuple[K, V, int] | None:
        row = self._connection.execute(statement, values).fetchone()
        entry: tuple[K, V, int] | None = None if row is None else pickle.loads(row[0])
        return entry
