"""``python -m tinkerwire_codegen diff``: what a change of the contract means for those who speak the old one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .change import LEVELS, Change, merged
from .compare import compare_contracts
from .inputs import Side, open_side
from .protobuf import compare_protos
from .report import FORMATS, report

FAILING = {"breaking": LEVELS[:1], "risky": LEVELS[:2], "any": LEVELS}


def register(commands: Any, schema: Path) -> None:
    """Add the command to the subparsers; ``schema`` is the contract that @VERSION is a version of."""
    command = commands.add_parser("diff", help="compare two contracts, or two versions of one, by direction")
    for name, text in (("old", "the contract that clients speak"), ("new", "the contract to compare it with")):
        command.add_argument(name, metavar=name.upper(), help=f"{text}: DIR, FILE, DIR@VERSION or @VERSION")
    command.add_argument("--schema", type=Path, default=schema, metavar="DIR", help="the contract of @VERSION")
    command.add_argument("--format", choices=FORMATS, default="text")
    command.add_argument("--fail-on", choices=tuple(FAILING), help="exit with 1 when there is such a change")
    command.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the changes: 0, or 1 when one is as bad as --fail-on says, or 2 on input that cannot be used."""
    try:
        old, new = (open_side(side, given.schema) for side in (given.old, given.new))
        changes = compare_sides(old, new)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    print(report(changes, old.name, new.name, given.format))  # noqa: T201
    failing = FAILING.get(given.fail_on, ())
    return 1 if any(change.level in failing for change in changes) else 0


def compare_sides(old: Side, new: Side) -> list[Change]:
    """All changes between two contracts, with those of their protobuf messages where both are folders."""
    changes = compare_contracts(old.document, new.document)
    if old.folder and new.folder:
        changes += compare_protos((old.folder, old.version), (new.folder, new.version))
    return merged(changes)
