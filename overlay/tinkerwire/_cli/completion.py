"""The command ``tinkerwire completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .entry import COMPLETION_VARIABLE
from .framework import command

SHELLS = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/tinkerwire.fish",
}
"""Shells, and the files that their completion belongs to."""


@command("completion", shared_options=False)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def cli(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Add the output to ~/.bashrc or ~/.zshrc, or write it to ~/.config/fish/completions/tinkerwire.fish.
    """
    completion = get_completion_class(shell)
    assert completion is not None
    root = ctx.find_root().command
    click.echo(completion(root, {}, "tinkerwire", COMPLETION_VARIABLE).source())
