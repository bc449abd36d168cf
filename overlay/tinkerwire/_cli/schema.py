"""The commands ``tinkerwire schema``, which run those of tinkerwire_codegen."""

from __future__ import annotations

import click

from .._extras import MissingPackageError
from .framework import command, group

ACTIONS = {
    "export": "Export one wire version as OpenAPI, JSON Schema or .proto.",
    "diff": "Compare two contracts or wire versions.",
    "upstream": "Compare a release of the official SDK with the contract.",
    "lint": "Check a contract, and that its generated code is current.",
}
NAMES = {"lint": "check"}
"""Names in tinkerwire_codegen that differ."""


@group("schema")
def cli() -> None:
    """Export, compare and check contracts of the wire."""


def _make_command(name: str, summary: str) -> click.Command:
    @command(
        name,
        shared_options=False,
        help=f"{summary}\n\nThe ARGUMENTS are those of `python -m tinkerwire_codegen {NAMES.get(name, name)}`; "
        "--help lists them. Needs the extra codegen.",
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def run(ctx: click.Context, arguments: tuple[str, ...]) -> None:
        ctx.exit(_run_codegen([NAMES.get(name, name), *arguments]))

    return run


for _name, _summary in ACTIONS.items():
    cli.add_command(_make_command(_name, _summary))


def _run_codegen(arguments: list[str]) -> int:
    """Run a command of tinkerwire_codegen in this process, and return its exit code."""
    # The client does not depend on the generator, whose packages are those of an extra.
    from importlib import import_module  # noqa: PLC0415

    try:
        main = import_module("tinkerwire_codegen.cli").main
    except (ImportError, SystemExit) as error:
        raise MissingPackageError(
            "tinkerwire schema needs the packages of the extra codegen; install them: pip install 'tinkerwire[codegen]'"
        ) from error
    try:
        return int(main(arguments))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
