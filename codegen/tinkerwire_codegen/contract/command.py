"""``python -m tinkerwire_codegen export``: the plain document of one wire version."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .export import FORMATS, export
from .lint import check_contract


def register(commands: Any, schema: Path) -> None:
    """Add the command to the subparsers; ``schema`` is the default contract."""
    command = commands.add_parser("export", help="write the plain document of one wire version")
    command.add_argument("--schema", type=Path, default=schema, metavar="DIR", help="contract [%(default)s]")
    command.add_argument("--wire", required=True, metavar="VERSION", help="wire version to export")
    command.add_argument("--format", required=True, choices=list(FORMATS), help="format of the document")
    command.add_argument("--out", type=Path, metavar="FILE", help="file to write [standard output]")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the document to ``--out`` or to standard output.

    Raises:
        ValueError: the contract has errors, or the version cannot be exported.
    """
    check_contract(arguments.schema)
    text = export(arguments.schema, arguments.wire, arguments.format)
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0
