"""The entry point of the command line: builds the parser and runs a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .._extras import MissingPackageError
from ..version import __version__
from . import auth, demo, record, serve

MISSING_ARGUMENTS = "the following arguments are required"
"""Beginning of the one argparse error that never contains a value of the user."""
EXIT_WRONG_USAGE = 2


class RedactingArgumentParser(argparse.ArgumentParser):
    """An argument parser; ``hide_values`` keeps values, unknown arguments included, out of its errors."""

    def __init__(self, *args: Any, hide_values: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hide_values = hide_values

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 after one line that names the flag."""
        if self._hide_values and not message.startswith(MISSING_ARGUMENTS):
            message = "invalid arguments; their values are hidden, because one may be a key"
        self.exit(EXIT_WRONG_USAGE, f"{self.prog}: error: {message}; see `{self.prog} --help`\n")

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Return the options and the unknown arguments; hide unknown arguments in an error."""
        options, unknown = super().parse_known_args(*args, **kwargs)
        # Without this check the parent parser would show the unknown arguments.
        if unknown and self._hide_values:
            self.error("unknown")
        return options, unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 1 for failure, 2 for wrong usage."""
    options = _build_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except MissingPackageError as error:
        sys.stderr.write(f"tinkerwire: {error}\n")
        return serve.EXIT_FAILED


def _build_parser() -> RedactingArgumentParser:
    parser = RedactingArgumentParser(prog="tinkerwire", description="A client and a small server of the Tinker API.")
    parser.add_argument("--version", action="version", version=f"tinkerwire {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    serve.register(subparsers)
    demo.register(subparsers)
    record.register(subparsers)
    auth.register(subparsers)
    return parser
