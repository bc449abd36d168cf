"""The command ``tinkerwire demo``."""

from __future__ import annotations

from pathlib import Path

import click

from .._extras import require_packages
from .errors import CommandFailed
from .framework import command


@command("demo", shared_options=False)
@click.option("--text", type=click.Path(path_type=Path), help="File to train on; by default a text that CPython ships.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    help="Folder for the loss curve.",
)
@click.option("--base-url", default="local", show_default=True, help="URL of the server; local is the embedded server.")
@click.option(
    "--base-model", default="tinkerwire/byte-small", show_default=True, help="A model whose tokens are bytes."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed that makes the run repeatable.")
def cli(text: Path | None, out: Path, base_url: str, base_model: str, seed: int) -> None:
    """Train, sample and reinforce a small model on real text, offline."""
    require_packages("the demo", "demo", "matplotlib", "plotext", "rich")
    # Only this command needs the plotting libraries.
    from .._demo.run import DemoFailed, Plan, run_demo  # noqa: PLC0415

    try:
        run_demo(text, out, Plan(base_url=base_url, base_model=base_model, seed=seed))
    except DemoFailed as error:
        raise CommandFailed(str(error)) from error
