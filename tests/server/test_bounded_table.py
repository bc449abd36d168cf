"""BoundedTable: entries on disk behave as those in memory, and a full disk loses none."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinkerwire._server import bounded_table
from tinkerwire._server.bounded_table import ENTRY_BYTES, BoundedTable
from tinkerwire._server.table_archive import TableArchive

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "pop", "drop", "drop oldest"]),
        st.tuples(st.sampled_from(["a", "b'\"\n"]), st.integers(0, 12)),
        st.integers(0, 2 * ENTRY_BYTES),
    ),
    max_size=60,
)


@pytest.fixture(autouse=True)
def few_recent_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep three entries in memory, and move two at a time."""
    monkeypatch.setattr(bounded_table, "RECENT_BYTES", 3 * ENTRY_BYTES)
    monkeypatch.setattr(bounded_table, "ARCHIVED_AT_ONCE", 2)


def describe(table: BoundedTable[Any, Any]) -> Any:
    """Return everything that a table can be asked."""
    keys = list(table)
    values = [table.get(key) for key in keys]
    assert list(table.values()) == values and all(key in table for key in keys)
    return keys, values, len(table), table.size_bytes, table.read_oldest()


@settings(max_examples=150)
@given(OPERATIONS, st.integers(1, 20))
def test_archive_does_not_change_the_content(operations: list[Any], entries: int) -> None:
    """A table with an archive has the same entries in the same order as one without, and drops the same ones."""
    dropped: tuple[list[Any], list[Any]] = [], []
    tables = [
        BoundedTable[Any, Any](entries * ENTRY_BYTES, lambda key, value: dropped[0].append((key, value))),
        BoundedTable[Any, Any](
            entries * ENTRY_BYTES, lambda key, value: dropped[1].append((key, value)), lambda key, value: value
        ),
    ]
    for step, (operation, key, size) in enumerate(operations):
        popped = []
        for table in tables:
            if operation == "put":
                table.put(key, f"value {step}", size)
            elif operation == "pop":
                popped.append(table.pop(key))
            elif operation == "drop":
                table.drop(key)
            else:
                table.drop_oldest()
        assert len(set(popped)) <= 1
        assert describe(tables[0]) == describe(tables[1])
        assert dropped[0] == dropped[1]


def test_older_entries_are_not_in_memory() -> None:
    """Only the newest entries are, each with the value that was prepared for the archive."""
    prepared = []

    def prepare(key: int, value: str) -> str:
        prepared.append(key)
        return value.upper()

    table: BoundedTable[int, str] = BoundedTable(2**20, to_archive=prepare)
    for number in range(100):
        table.put(number, "value")
    assert 1 <= len(table._entries) <= 3
    assert prepared == list(range(100 - len(table._entries)))
    assert (table.get(0), table.get(99)) == ("VALUE", "value")


def test_full_disk_keeps_entries_in_memory(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A table whose temporary file cannot grow has all entries nevertheless, and warns once."""
    table: BoundedTable[int, str] = BoundedTable(2**20, to_archive=lambda key, value: value)
    for number in range(10):
        table.put(number, str(number))

    def fail(*arguments: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(TableArchive, "add", fail)
    for number in range(10, 20):
        table.put(number, str(number))
    assert list(table) == list(range(20)) and list(table.values()) == [str(number) for number in range(20)]
    assert [record.message for record in caplog.records] == [
        "results and keys stay in memory, because temporary files cannot be written: database or disk is full"
    ]
