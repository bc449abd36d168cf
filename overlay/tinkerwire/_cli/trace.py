"""The command ``tinkerwire trace``."""

from __future__ import annotations

from pathlib import Path

import click

from .framework import WRITABLE, SharedOptions, command, pass_options
from .output import print_result, report


@command("trace")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--run", "number", type=int, help="Number of the run, if the file has several; by default the last.")
@click.option("--html", type=WRITABLE, metavar="FILE", help="Write a page that needs no network.")
@click.option("--perfetto", type=WRITABLE, metavar="FILE", help="Write a file for https://ui.perfetto.dev.")
@pass_options
def cli(options: SharedOptions, file: Path, number: int | None, html: Path | None, perfetto: Path | None) -> None:
    """Show where the time of a traced run went, and how to save some.

    FILE is the path that TINKERWIRE_TRACE or ServiceClient(trace=...) had.
    """
    from .._trace import report as trace_report  # noqa: PLC0415

    trace = trace_report.read_trace(file, number)
    if html is not None:
        trace_report.write_html(trace, html)
        report(options, f"The page is in {html}.")
    if perfetto is not None:
        trace_report.write_perfetto(trace, perfetto)
        report(options, f"The trace for Perfetto is in {perfetto}.")
    if options.as_json or (html is None and perfetto is None):
        print_result(options, trace_report.to_json(trace), trace_report.format_table(trace).rstrip("\n"))
