"""The entry point of the command line: builds the parser and runs a command."""

from __future__ import annotations

from collections.abc import Sequence

from ..version import __version__
from . import auth, demo, serve
from .redacting_parser import RedactingArgumentParser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 1 for failure, 2 for wrong usage."""
    options = _build_parser().parse_args(arguments)
    return int(options.run(options))


def _build_parser() -> RedactingArgumentParser:
    parser = RedactingArgumentParser(prog="tinkerwire", description="A client and a small server of the Tinker API.")
    parser.add_argument("--version", action="version", version=f"tinkerwire {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    serve.register(subparsers)
    demo.register(subparsers)
    auth.register(subparsers)
    return parser
