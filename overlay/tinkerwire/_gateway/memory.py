"""Memory of the gateway beyond one request: bounded, and optionally in a file that outlives the gateway."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from pathlib import Path

MAX_ENTRIES = 100_000
"""Entries of one kind in memory."""
MAX_REMEMBERED_IDS = 1_000_000
"""Entries in the file; the oldest are deleted."""
PRUNE_EVERY = 10_000

FUTURE = "future"
"""Operation of a future, by request_id."""
WIRE = "wire"
"""Wire version of a client that names none in its headers, by the ids that it uses."""
MODEL = "model"
"""The upstream's model, by the id under which the client knows it."""
LOAD = "load"
"""The upstream's future of a load, by the gateway's id of creation and load together; empty before the load."""
SAMPLER = "sampler"
"""Base model and path of a sampling session, as JSON."""
RESULT = "result"
"""Result that the upstream gave in place of a future, as JSON."""
SESSION_NAME = "session_name"
"""The display_name of a session."""
PROMPT_LENGTH = "prompt"
"""Length of the prompt of a sample with prompt logprobs, by request_id."""
KEPT_KINDS = frozenset({WIRE, MODEL, LOAD, SAMPLER, RESULT, SESSION_NAME, PROMPT_LENGTH})
"""Kinds that the file keeps. A client names the kind of a future in each poll."""


class Memory:
    """Texts by kind and key: the newest in memory, all of :data:`KEPT_KINDS` in a file if one is given.

    No key of an API is ever stored.

    Args:
        path: the file, an SQLite database; None for memory only.

    Raises:
        ValueError: the file cannot be used.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._tables: dict[str, OrderedDict[str, str]] = {}
        self._database = None if path is None else _open(path)
        self._writes = 0

    def get(self, kind: str, key: str) -> str | None:
        """Return a value; None if the key is unknown."""
        table = self._tables.get(kind)
        value = None if table is None else table.get(key)
        if value is not None or self._database is None or kind not in KEPT_KINDS:
            return value
        row = self._database.execute("SELECT value FROM entries WHERE kind = ? AND key = ?", (kind, key)).fetchone()
        return None if row is None else str(row[0])

    def put(self, kind: str, key: str, value: str) -> None:
        """Keep a value, in place of an earlier one."""
        table = self._tables.setdefault(kind, OrderedDict())
        table[key] = value
        table.move_to_end(key)
        if len(table) > MAX_ENTRIES:
            table.popitem(last=False)
        if self._database is not None and kind in KEPT_KINDS:
            self._database.execute(
                "INSERT OR REPLACE INTO entries (kind, key, value) VALUES (?, ?, ?)", (kind, key, value)
            )
            self._prune()

    def has_any(self, kind: str) -> bool:
        """Return whether any value of a kind was kept."""
        if self._tables.get(kind):
            return True
        if self._database is None:
            return False
        return self._database.execute("SELECT 1 FROM entries WHERE kind = ? LIMIT 1", (kind,)).fetchone() is not None

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()

    def _prune(self) -> None:
        self._writes += 1
        if self._database is not None and self._writes % PRUNE_EVERY == 0:
            self._database.execute(
                "DELETE FROM entries WHERE rowid <= (SELECT max(rowid) FROM entries) - ?", (MAX_REMEMBERED_IDS,)
            )


def _open(path: Path) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        database.execute("PRAGMA journal_mode = WAL")
        # A kill of the process loses nothing; only a crash of the machine may lose the last entries.
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("CREATE TABLE IF NOT EXISTS entries (kind TEXT, key TEXT, value TEXT, UNIQUE (kind, key))")
        path.chmod(0o600)
    except (sqlite3.Error, OSError) as error:
        raise ValueError(f"state: {path} cannot be used: {error}") from None
    return database
