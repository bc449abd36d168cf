"""``python -m tinkerwire_codegen generate`` and ``check``: write the generated package, or compare it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .package import find_outdated_files, generate


def register(commands: Any, schema: Path) -> None:
    """Add the commands to the subparsers; ``schema`` is the default contract."""
    for name, run, text in (
        ("generate", run_generate, "write the package tinkerwire_generated into --out"),
        ("check", run_check, "list the files in --out that differ from a fresh generation"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--schema", type=Path, default=schema, metavar="DIR", help="contract [%(default)s]")
        command.add_argument("--out", type=Path, metavar="DIR", help="folder of the package [generated/ beside it]")
        command.set_defaults(run=run)


def run_generate(arguments: argparse.Namespace) -> int:
    """Write the package."""
    with _schema_in_errors(arguments.schema):
        generate(arguments.schema, arguments.out or default_out(arguments.schema))
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    """Print the files that are not current; return 1 if there are any."""
    out = arguments.out or default_out(arguments.schema)
    with _schema_in_errors(arguments.schema):
        lines = find_outdated_files(arguments.schema, out)
    if lines:
        lines.append(f"{out} does not match {arguments.schema}; run `make generate` and commit the result")
    for line in lines:
        print(line, file=sys.stderr)  # noqa: T201
    return 1 if lines else 0


def default_out(schema: Path) -> Path:
    """Return the folder ``generated`` beside a contract.

    For the contract inside an installed package, ``generated`` is in the current folder.
    """
    is_installed = schema.parent == Path(__file__).parents[1]
    return (Path() if is_installed else schema.parent) / "generated"


@contextmanager
def _schema_in_errors(schema: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, RuntimeError) as error:
        raise type(error)(f"{schema}: {error}") from error
