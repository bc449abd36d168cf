"""The commands ``tinkerwire billing``."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from .client import open_rest_client
from .framework import SharedOptions, group, pass_options
from .output import STDOUT, Table, print_result, report

UsageRow = Mapping[str, Any]


@group("billing")
def cli() -> None:
    """Show usage and storage of the organization."""


@cli.command("usage")
@click.argument("starting_on")
@click.argument("ending_before")
@click.option("--csv", "csv_path", metavar="FILE", help="Write the rows as CSV to a file, or to - for standard output.")
@click.option(
    "--sessions-csv",
    "sessions_path",
    metavar="FILE",
    help="Write session_id and user_metadata of each session as CSV, to join with the rows.",
)
@pass_options
def _usage(
    options: SharedOptions, starting_on: str, ending_before: str, csv_path: str | None, sessions_path: str | None
) -> None:
    """Show the usage of each hour.

    STARTING_ON and ENDING_BEFORE are RFC 3339 times at full hours UTC, such as 2026-07-13T00:00:00Z. Costs are
    estimates in USD before credits; a missing value means that the server has no price yet.
    """
    with open_rest_client(options) as rest:
        usage = rest.get_billing_usage(starting_on, ending_before).result()
    data = usage.model_dump(mode="json")
    rows = [_flatten(row) for row in data["data"]]
    if sessions_path is not None:
        sessions = [
            {"session_id": name, "user_metadata": json.dumps(session.get("user_metadata"))}
            for name, session in data["sessions"].items()
        ]
        _write_csv(options, ("session_id", "user_metadata"), sessions, sessions_path)
    if csv_path is not None:
        _write_csv(options, _columns(rows), rows, csv_path)
    if csv_path is None and sessions_path is None:
        print_result(options, data, _table(rows, "No usage in this time.", f"{len(rows)} rows"))


@cli.command("checkpoint-storage")
@click.option("--project-id", help="Only the storage of this project.")
@click.option("--csv", "csv_path", metavar="FILE", help="Write the rows as CSV to a file, or to - for standard output.")
@pass_options
def _checkpoint_storage(options: SharedOptions, project_id: str | None, csv_path: str | None) -> None:
    """Show the stored checkpoints and their projected cost per month."""
    with open_rest_client(options) as rest:
        storage = rest.get_current_checkpoint_storage_usage(project_id).result()
    data = storage.model_dump(mode="json")
    rate = data["effective_rate_usd_per_gigabyte_month"]
    rows = [{"effective_rate_usd_per_gigabyte_month": rate, **row} for row in data["data"]]
    if csv_path is not None:
        _write_csv(options, _columns(rows), rows, csv_path)
    else:
        print_result(options, data, _table(rows, "No stored checkpoints.", f"{len(rows)} rows"))


def _flatten(row: UsageRow) -> UsageRow:
    """Return a row with the fields of its event_info beside the others."""
    info = row.get("event_info")
    if not isinstance(info, Mapping):
        return row
    return {**{name: value for name, value in row.items() if name != "event_info"}, **info}


def _columns(rows: Sequence[UsageRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _table(rows: Sequence[UsageRow], empty: str, title: str) -> Table:
    columns = _columns(rows)
    cells = [["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows]
    return Table(columns, cells, title if rows else empty)


def _write_csv(options: SharedOptions, columns: Sequence[str], rows: Sequence[UsageRow], path: str) -> None:
    if path == STDOUT:
        _write_rows(sys.stdout, columns, rows)
        return
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        _write_rows(file, columns, rows)
    report(options, f"Wrote {len(rows)} rows to {path}.")


def _write_rows(file: TextIO, columns: Sequence[str], rows: Sequence[UsageRow]) -> None:
    writer = csv.DictWriter(file, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
