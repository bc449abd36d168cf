"""A database in a server's folder, written in transactions that survive the end of the process at any moment."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

from tinkerwire._server.http.responses import HttpError

FORMAT = 1
"""Version of the tables; a database of another version is rejected."""
BUSY_S = 5.0
"""Seconds to wait for another process that uses the database."""
PROBE_BYTES = 64 * 2**10
"""Free space that :meth:`Database.require_writable` requires."""


LOG_PAGES = 4096
"""Size of the log, in pages of 4 KiB, at which SQLite moves it to the file and waits for the disk."""


class StorageError(OSError):
    """The database cannot be written; it holds nothing of the transaction that failed."""


class Database:
    """A SQLite database. A block ``with database:`` is one transaction; nested blocks belong to the outermost one.

    An HttpError that leaves the outermost block commits, because handlers keep what they changed before a rejection.
    Any other error rolls back, and the database rejects all later work: memory and disk may differ then.

    Args:
        path: path of the file, which the first write creates; None keeps nothing.
        schema: statements that create the tables.

    Raises:
        ValueError: the file is damaged, or another version of the server wrote it.
        StorageError: the file cannot be opened now, such as on a full disk.
    """

    def __init__(self, path: Path | None, schema: str) -> None:
        self._path = path
        self._schema = schema
        self._lock = threading.RLock()
        self._depth = 0
        self._has_begun = False
        self._callbacks: list[Callable[[], object]] = []
        self._deferred: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._connection: sqlite3.Connection | None = None
        self._close_connection: Callable[[], object] = lambda: None
        self._is_closed = False
        self.has_failed = False
        """True if a transaction failed: the state in memory must be read again."""
        if path is not None and path.exists():
            try:
                self._open(path)
            except sqlite3.OperationalError as error:
                raise self._fail(error) from error
            except sqlite3.Error as error:
                raise ValueError(f"{path} cannot be read: {error}; restore the file, or move it away") from None

    @property
    def is_durable(self) -> bool:
        """True if the database has a file."""
        return self._path is not None

    @property
    def is_empty(self) -> bool:
        """True if nothing was written yet."""
        return self._connection is None

    def __enter__(self) -> Self:
        self._lock.acquire()
        if self.has_failed and self._depth == 0:
            self._lock.release()
            raise self._fail(None)
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._depth == 1:
                self._end(commits=error is None or isinstance(error, HttpError))
        finally:
            self._depth -= 1
            self._lock.release()

    def execute(self, statement: str, *values: Any) -> None:
        """Execute a statement in the current transaction.

        Raises:
            StorageError: the database cannot be written.
        """
        if self._path is None:
            return
        with self:
            try:
                connection = self._begin(self._path)
                connection.execute(statement, values)
            except (sqlite3.Error, OSError) as error:
                raise self._fail(error) from error

    def defer(self, statement: str, *values: Any) -> None:
        """Execute a statement together with the next transaction; it is lost if the process ends before."""
        if self._path is not None:
            self._deferred.append((statement, values))

    def after_commit(self, callback: Callable[[], object]) -> None:
        """Call a function after the current transaction is committed, or now outside of one."""
        with self:
            self._callbacks.append(callback)

    def query(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a query; an empty list if nothing was written yet."""
        with self._lock:
            return [] if self._connection is None else self._connection.execute(statement, values).fetchall()

    def require_writable(self) -> None:
        """Write and remove some data.

        Raises:
            StorageError: the database cannot be written.
        """
        for content in (b"\1" * PROBE_BYTES, b""):
            self.execute("INSERT OR REPLACE INTO settings VALUES ('probe', ?)", content)

    def close(self) -> None:
        """Write deferred statements and close the file; later writes fail."""
        with self._lock:
            if self._deferred and not (self.is_empty or self.has_failed or self._is_closed):
                # Without the deferred statements, the file is valid as well.
                with suppress(StorageError), self:
                    statement, values = self._deferred.popleft()
                    self.execute(statement, *values)
            self._is_closed = True
            self._connection = None
            self._close_connection()

    def _begin(self, path: Path) -> sqlite3.Connection:
        if self.has_failed or self._is_closed:
            raise OSError("it was closed after an error" if self.has_failed else "it is closed")
        if self._connection is None:
            self._open(path)
        assert self._connection is not None
        if not self._has_begun:
            self._connection.execute("BEGIN IMMEDIATE")
            self._has_begun = True
        return self._connection

    def _open(self, path: Path) -> None:
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, FORMAT):
                raise ValueError(f"{path} has format {version}, expected {FORMAT}; move the file away")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            # A commit then survives the end of the process, and a loss of power loses the last ones at most.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
            if version == 0:
                connection.executescript(f"BEGIN; {self._schema} PRAGMA user_version = {FORMAT}; COMMIT;")
            connection.execute("PRAGMA incremental_vacuum").fetchall()
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._close_connection = weakref.finalize(self, _close_unless_forked, connection, os.getpid())

    def _end(self, *, commits: bool) -> None:
        callbacks, self._callbacks = self._callbacks, []
        try:
            if self._path is not None and (self.has_failed or not commits):
                raise self._fail(None)
            if self._has_begun:
                self._commit()
        except StorageError:
            if commits:
                raise
            return
        try:
            for callback in callbacks:
                callback()
        except BaseException:
            # The work of a recorded operation may not have been queued.
            self.has_failed = self.is_durable
            raise

    def _commit(self) -> None:
        assert self._connection is not None
        try:
            while self._deferred:
                self._connection.execute(*self._deferred.popleft())
            self._connection.execute("COMMIT")
            self._has_begun = False
        except sqlite3.Error as error:
            raise self._fail(error) from error

    def _fail(self, error: Exception | None) -> StorageError:
        """Roll back, reject all later work, and return the error to raise."""
        self.has_failed = True
        if self._has_begun and self._connection is not None:
            self._has_begun = False
            if self._connection.in_transaction:
                self._connection.rollback()
        reason = "an earlier write failed" if error is None else str(error)
        return StorageError(f"{self._path} cannot be written: {reason}; free space on its disk, or make it writable")


def _close_unless_forked(connection: sqlite3.Connection, pid: int) -> None:
    """Close a connection, except in a forked child, where this would release the locks of the parent."""
    if os.getpid() == pid:
        connection.close()
