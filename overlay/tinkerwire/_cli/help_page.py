"""Makes ``help.txt``, the text of ``tinkerwire --help``: ``python -m tinkerwire._cli.help_page``."""

from __future__ import annotations

from pathlib import Path

import click

from .app import root
from .framework import HELP_FLAGS, HELP_WIDTH

HELP_FILE = Path(__file__).with_name("help.txt")


def render() -> str:
    """Return the help of the root command, 80 columns wide."""
    context = click.Context(root, info_name="tinkerwire", terminal_width=HELP_WIDTH, help_option_names=HELP_FLAGS)
    return root.get_help(context) + "\n"


if __name__ == "__main__":
    HELP_FILE.write_text(render(), encoding="utf-8")
