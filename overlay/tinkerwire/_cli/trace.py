"""The command ``tinkerwire trace``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def register(subparsers: Any) -> None:
    """Add the command to the subparsers of a parser."""
    parser = subparsers.add_parser("trace", help="show where the time of a traced run went, and how to save some")
    parser.add_argument("file", type=Path, help="the path that TINKERWIRE_TRACE or ServiceClient(trace=...) had")
    parser.add_argument(
        "--run", dest="number", type=int, help="number of the run, if the file holds several; by default the last"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page that needs no network")
    parser.add_argument("--perfetto", type=Path, metavar="FILE", help="write a file for https://ui.perfetto.dev")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    # Only this command needs the report.
    import orjson  # noqa: PLC0415

    from .._trace import report  # noqa: PLC0415

    try:
        trace = report.read_trace(options.file, options.number)
        if options.html is not None:
            report.write_html(trace, options.html)
        if options.perfetto is not None:
            report.write_perfetto(trace, options.perfetto)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"tinkerwire trace: {error}\n")
        return 1
    if options.json:
        sys.stdout.write(orjson.dumps(report.to_json(trace), option=orjson.OPT_INDENT_2).decode() + "\n")
    elif options.html is None and options.perfetto is None:
        sys.stdout.write(report.format_table(trace))
    return 0
