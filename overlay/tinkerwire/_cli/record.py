"""The command ``tinkerwire record``."""

from __future__ import annotations

from pathlib import Path

import click

from .errors import MissingCommand
from .framework import CONTEXT, command


@command(
    "record", shared_options=False, hide_values=True, context_settings={**CONTEXT, "allow_interspersed_args": False}
)
@click.option(
    "--to",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The recording to write.",
)
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGUMENT]...")
@click.pass_context
def cli(ctx: click.Context, to: Path, overwrite: bool, program: tuple[str, ...]) -> None:
    """Run a program, and record its requests and responses.

    The same program runs again without a server, with the same results, when TINKER_BASE_URL is replay:FILE. The exit
    code is that of the program.
    """
    from .._tape.recorded_program import count_exchanges, run_recorded  # noqa: PLC0415

    if not program:
        raise MissingCommand("no program to run; give it after --, such as `-- python train.py`", ctx)
    code = run_recorded(to, list(program), overwrite=overwrite)
    if not count_exchanges(to):
        message = (
            "nothing was recorded: the program sent no request with tinkerwire; programs for the official SDK run "
            "with `python -m tinkerwire.dropin`"
        )
        click.echo(f"{ctx.command_path}: {message}", err=True)
    ctx.exit(code)
