"""Tests of the database in a server's folder: transactions, and their failure."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.storage.database import Database, StorageError

SCHEMA = "CREATE TABLE settings (name TEXT PRIMARY KEY, value);"
INSERT = "INSERT INTO settings VALUES (?, 1)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "test.sqlite3"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(path, SCHEMA)
    yield database
    database.close()


def read_names(path: Path) -> list[str]:
    """Return the names that are committed in a file."""
    connection = sqlite3.connect(path)
    try:
        return [name for (name,) in connection.execute("SELECT name FROM settings ORDER BY rowid")]
    finally:
        connection.close()


def test_file_is_created_by_the_first_write(database: Database, path: Path) -> None:
    with database:
        assert database.is_empty
    assert not path.exists()
    database.execute(INSERT, "a")
    assert read_names(path) == ["a"]


def test_nested_blocks_are_one_transaction(database: Database, path: Path) -> None:
    with database:
        with database:
            database.execute(INSERT, "a")
        database.defer(INSERT, "b")
        assert not path.exists() or read_names(path) == []
    assert read_names(path) == ["a", "b"]


def test_callbacks_run_in_order_after_the_commit(database: Database, path: Path) -> None:
    names: list[list[str]] = []
    with database:
        database.after_commit(lambda: names.append(read_names(path)))
        database.execute(INSERT, "a")
        assert not names
    assert names == [["a"]]
    database.after_commit(lambda: names.append([]))
    assert names[-1] == []


def test_rejection_commits_and_other_errors_roll_back(database: Database, path: Path) -> None:
    """After a rollback, memory may differ from the file, so that every later transaction fails."""
    with pytest.raises(HttpError), database:
        database.execute(INSERT, "a")
        raise HttpError(422, "no")
    calls: list[int] = []
    with pytest.raises(ZeroDivisionError), database:
        database.execute(INSERT, "b")
        database.after_commit(lambda: calls.append(1))
        raise ZeroDivisionError
    assert read_names(path) == ["a"]
    assert database.has_failed
    assert not calls
    with pytest.raises(StorageError, match="cannot be written"):
        database.execute(INSERT, "c")


def test_full_disk_fails_the_transaction_as_a_whole(database: Database, path: Path) -> None:
    database.execute(INSERT, "a")
    assert database._connection is not None
    database._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StorageError, match="database or disk is full; free space"), database:
        database.execute(INSERT, "b")
        database.execute("INSERT INTO settings VALUES ('c', zeroblob(100000))")
    assert read_names(path) == ["a"]


def test_closed_database_keeps_deferred_statements_and_rejects_others(database: Database, path: Path) -> None:
    database.execute(INSERT, "a")
    database.defer(INSERT, "b")
    database.close()
    assert read_names(path) == ["a", "b"]
    with pytest.raises(StorageError, match="it is closed"):
        database.execute(INSERT, "c")


def test_database_without_a_file_runs_callbacks_only(tmp_path: Path) -> None:
    database = Database(None, SCHEMA)
    calls: list[int] = []
    with database:
        database.execute(INSERT, "a")
        database.defer(INSERT, "b")
        database.after_commit(lambda: calls.append(1))
    assert calls
    assert database.query("SELECT * FROM settings") == []


@pytest.mark.parametrize("content", [b"not a database" * 99, b"SQLite format 3\0" + b"\xff" * 4096])
def test_damaged_file_is_an_error_that_names_it(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"test\.sqlite3 cannot be read: .*; restore the file, or move it away"):
        Database(path, SCHEMA)
    assert path.read_bytes() == content


def test_file_of_another_format_is_an_error_that_names_it(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ValueError, match="has format 99, expected 1; move the file away"):
        Database(path, SCHEMA)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_end_of_a_forked_child_leaves_the_file_to_the_parent(path: Path) -> None:
    """The child has a copy of the connection, and its end must not remove the log of the parent."""
    code = f"""
import os, sqlite3, sys
from pathlib import Path
from tinkerwire._server.storage.database import Database
database = Database(Path({str(path)!r}), {SCHEMA!r})
for number in range(50):
    database.execute({INSERT!r}, str(number))
    if number % 10 == 0:
        if os.fork() == 0:
            if number % 20 == 0:
                database.close()
            sys.exit(0)
        os.wait()
        assert len(database.query("SELECT * FROM settings")) == number + 1
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60, check=False)
    assert read_names(path) == [str(number) for number in range(50)]


def test_failed_database_starts_no_transaction(database: Database) -> None:
    """The work of a block would be without success."""
    with pytest.raises(ZeroDivisionError), database:
        raise ZeroDivisionError
    with pytest.raises(StorageError, match="an earlier write failed"), database:
        raise AssertionError("the block ran")


def test_file_that_cannot_be_opened_now_is_not_reported_as_damaged(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageError, match="unable to open database file; free space on its disk"):
        Database(path, SCHEMA)
