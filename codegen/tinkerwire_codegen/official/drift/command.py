"""``python -m tinkerwire_codegen upstream``: what a release of the official SDK says that the contract does not."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..release.read import read_facts
from ..release.source import open_source
from .drift import find_drift
from .report import FORMATS, report

WIRE_NEEDED = "has no version in it; say which wire version it speaks with --wire"


def register(commands: Any, schema: Path) -> None:
    """Add the command to the subparsers; ``schema`` is the default contract."""
    command = commands.add_parser("upstream", help="compare a release of the official SDK with the contract")
    command.add_argument("release", metavar="X", help="a wheel, an unpacked folder, a version on the index, or latest")
    command.add_argument("--schema", type=Path, default=schema, metavar="DIR", help="folder of the contract")
    command.add_argument("--wire", metavar="V", help="compare with the contract at V, not at the release's version")
    command.add_argument("--format", choices=FORMATS, default="text")
    command.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the drift: 0 when there is none, 1 when there is some, 2 on input that cannot be used."""
    try:
        source = open_source(given.release)
        version = given.wire or source.version
        if version is None:
            raise ValueError(f"upstream {given.release}: {WIRE_NEEDED}")
        found = find_drift(given.schema, read_facts(source), version)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    print(report(found, version, given.format))  # noqa: T201
    return 1 if found else 0
