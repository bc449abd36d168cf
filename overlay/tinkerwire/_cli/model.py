"""The commands ``tinkerwire model``."""

from __future__ import annotations

import click

from .client import open_rest_client
from .errors import CommandFailed
from .framework import SharedOptions, group, pass_options
from .output import Table, format_flag, print_result


@group("model")
def cli() -> None:
    """List the models of the server."""


@cli.command("list")
@click.argument("substring", required=False)
@pass_options
def _list(options: SharedOptions, substring: str | None) -> None:
    """List the models that can be trained or sampled.

    SUBSTRING keeps the models whose name contains it, in any case. A name is what base_model expects.
    """
    with open_rest_client(options) as rest:
        models = rest.get_server_capabilities().result().supported_models
    if substring is not None:
        models = [model for model in models if substring.lower() in (model.model_name or "").lower()]
        if not models:
            raise CommandFailed(f"the server has no model with {substring!r} in its name; omit SUBSTRING to list all")
    rows = [
        (
            model.model_name or "-",
            "-" if model.max_context_length is None else str(model.max_context_length),
            format_flag(model.trainable),
            format_flag(model.sampleable),
        )
        for model in models
    ]
    data = {"models": [model.model_dump(mode="json") for model in models]}
    title = None if models else "The server has no models."
    print_result(options, data, Table(("Model", "Max context", "Trainable", "Sampleable"), rows, title))
