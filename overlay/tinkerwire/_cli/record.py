"""The command ``tinkerwire record``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .serve import EXIT_FAILED


def register(subparsers: Any) -> None:
    """Add the command to the subparsers of a parser."""
    parser = subparsers.add_parser(
        "record",
        help="run a program and record its requests and responses, to replay them without a server",
        usage="%(prog)s [-h] --to FILE [--overwrite] -- PROGRAM [ARGUMENT ...]",
    )
    parser.add_argument("--to", required=True, type=Path, metavar="FILE", help="the recording to write")
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM", help="the program to run")
    parser.set_defaults(run=_record, error=parser.error)


def _record(options: argparse.Namespace) -> int:
    from .._tape.recorded_program import count_exchanges, run_recorded  # noqa: PLC0415

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        options.error("no program to run; give it after --, such as `-- python train.py`")
    try:
        code = run_recorded(options.to, command, overwrite=options.overwrite)
        count = count_exchanges(options.to)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"tinkerwire record: {error}\n")
        return EXIT_FAILED
    if not count:
        sys.stderr.write(
            "tinkerwire record: nothing was recorded: the program sent no request with tinkerwire; programs for the "
            "official SDK run with `python -m tinkerwire.dropin`\n"
        )
    return code
