"""Output of commands: tables that fit the terminal, or JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, NamedTuple, TextIO

import click

from .errors import escape
from .framework import SharedOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GAP = "  "
COUNTER_PAUSE_S = 0.1
"""Time between two updates of a counter."""
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
STDOUT = "-"
"""Name of a file that stands for the standard output."""


class Table(NamedTuple):
    """Rows under columns.

    A table that is wider than the terminal is written as one block of ``column: value`` lines a row, so that no
    value is cut. Without a terminal, every row is one line.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str | None = None

    def render(self, width: int | None = None, *, is_bold: bool = False) -> str:
        """Return the text; ``width`` is that of the terminal, None for unlimited."""
        title = [escape(self.title), ""] if self.title and self.rows else [self.title] if self.title else []
        if not self.rows:
            return "\n".join(title)
        rows = [[escape(cell) or "-" for cell in row] for row in self.rows]
        header = [column.upper() for column in self.columns]
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        if width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width:
            return "\n".join([*title, *self._render_blocks(rows)])
        lines = [
            GAP.join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
            for row in [header, *rows]
        ]
        if is_bold:
            lines[0] = click.style(lines[0], bold=True)
        return "\n".join([*title, *lines])

    def _render_blocks(self, rows: list[list[str]]) -> list[str]:
        size = max(map(len, self.columns)) + 1
        blocks = [
            [f"{name}:".ljust(size) + f" {cell}" for name, cell in zip(self.columns, row, strict=True)] for row in rows
        ]
        return [line for block in blocks for line in (*block, "")][:-1]


def properties(pairs: Mapping[str, str | None], title: str | None = None) -> Table:
    """Return a table of names and values; pairs whose value is None are omitted."""
    rows = [(name, value) for name, value in pairs.items() if value is not None]
    return Table(("Property", "Value"), rows, title)


def print_result(options: SharedOptions, data: Any, table: Table | str) -> None:
    """Print a result: ``data`` as JSON if the user asked for it, otherwise the table or text."""
    if options.as_json:
        print_json(data)
    elif isinstance(table, str):
        for line in table.split("\n"):
            print_line(line)
    else:
        print_table(table)


def print_table(table: Table, *, err: bool = False) -> None:
    """Print a table that fits the terminal on standard output or standard error."""
    stream = sys.stderr if err else sys.stdout
    width = get_width(stream) if stream.isatty() else None
    click.echo(table.render(width, is_bold=width is not None and uses_colors(stream)), err=err)


def get_width(stream: TextIO) -> int:
    """Return the number of columns of the terminal of a stream."""
    # shutil asks the terminal of standard output, which may be a pipe.
    if (columns := os.environ.get("COLUMNS", "")).isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def print_json(data: Any) -> None:
    """Print a value as indented JSON; control characters are escaped, as JSON does."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, default=_to_json).replace("\x7f", "\\u007f"))


def print_line(text: str) -> None:
    """Print a line of text without control characters."""
    click.echo(escape(text))


def print_text(text: str) -> None:
    """Print a text of a model without control characters other than line breaks and tabs."""
    click.echo(escape(text, kept="\n\t"))


def report(options: SharedOptions, text: str) -> None:
    """Print a line about the course of a command on standard error, unless the output is JSON."""
    if not options.as_json:
        click.echo(escape(text), err=True)


def uses_colors(stream: TextIO) -> bool:
    """Return whether a stream may have colors: a terminal, without NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


@contextmanager
def progress(options: SharedOptions, label: str, length: int | None) -> Iterator[Callable[[int], None]]:
    """Show progress on standard error if it is a terminal; yield the function that advances it.

    A length of None counts bytes; the other lengths get a bar.
    """
    if options.as_json or not sys.stderr.isatty():
        yield lambda _: None
        return
    if length is None:
        counter = _Counter(label)
        try:
            yield counter.advance
        finally:
            sys.stderr.write("\n")
        return
    with click.progressbar(length=length, label=label, file=sys.stderr, show_pos=True) as bar:
        yield bar.update


class _Counter:
    """Number of bytes of a transfer whose size is unknown, on a line of standard error."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._size = 0
        self._shown_at = 0.0

    def advance(self, size: int) -> None:
        self._size += size
        if time.monotonic() - self._shown_at > COUNTER_PAUSE_S:
            self._shown_at = time.monotonic()
            sys.stderr.write(f"\r{self._label} {format_size(self._size):12}")
            sys.stderr.flush()


def format_size(size: int | None) -> str:
    """Return a number of bytes with its unit."""
    if size is None:
        return "-"
    value = float(size)
    for unit in UNITS[:-1]:
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {UNITS[-1]}"


def format_time(moment: datetime | None, missing: str = "-") -> str:
    """Return a time in UTC, to the second."""
    if moment is None:
        return missing
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return zoned.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


def format_flag(value: bool | None) -> str:
    """Return yes, no or -."""
    return "-" if value is None else "yes" if value else "no"


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
