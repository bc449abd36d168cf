"""``python -m tinkerwire_codegen diff``: the effect of a contract change on clients of the old contract.

The command exits with 0, with 1 if a change reaches the level of ``--fail-on``, and with 2 if an input cannot be used.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..contract.output import write_output
from .change import LEVELS, Change, merge_changes
from .contracts import compare_prepared
from .inputs import ContractInput, open_contract
from .protobuf import compare_protos
from .report import FORMATS, render_report

FAILING_LEVELS = {"breaking": LEVELS[:1], "risky": LEVELS[:2], "any": LEVELS}


def register(commands: Any, schema: Path) -> None:
    """Add the command to the subparsers; ``schema`` is the contract that @VERSION refers to."""
    command = commands.add_parser(
        "diff",
        help="compare two contracts, or two versions of one, by direction",
        epilog="exit codes: 0 success, 1 a change reaches the level of --fail-on, 2 an input cannot be used",
    )
    for name, text in (("old", "contract of the clients"), ("new", "contract to compare with it")):
        command.add_argument(name, metavar=name.upper(), help=f"{text}: DIR, FILE, DIR@VERSION or @VERSION")
    command.add_argument("--schema", type=Path, default=schema, metavar="DIR", help="contract of @VERSION")
    command.add_argument("--format", choices=FORMATS, default="text", help="format of the report [%(default)s]")
    command.add_argument("--fail-on", choices=tuple(FAILING_LEVELS), help="exit with 1 from this level on")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the changes; return 1 if one of them reaches the level of ``--fail-on``."""
    old, new = (open_contract(text, arguments.schema) for text in (arguments.old, arguments.new))
    changes = compare_inputs(old, new)
    write_output(render_report(changes, old.name, new.name, arguments.format))
    failing = FAILING_LEVELS.get(arguments.fail_on, ())
    return 1 if any(change.level in failing for change in changes) else 0


def compare_inputs(old: ContractInput, new: ContractInput) -> list[Change]:
    """Compare two contracts, and their protobuf messages if both are folders."""
    changes = compare_prepared(old.prepared, new.prepared)
    if old.messages and new.messages:
        changes += compare_protos(old.messages, new.messages)
    return merge_changes(changes)
