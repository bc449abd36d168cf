"""The commands ``tinkerwire run``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from .client import open_rest_client
from .framework import SharedOptions, group, pass_options
from .output import Table, format_time, print_result, properties
from .pages import describe_count, fetch_pages

if TYPE_CHECKING:
    from tinkerwire_generated import models

RUNS_PER_PAGE = 100
DEFAULT_COLUMNS = "id,model,lora,updated,status"


def _lora(run: models.TrainingRun) -> str:
    if not run.is_lora:
        return "no"
    return f"rank {run.lora_rank}" if run.lora_rank else "yes"


def _status(run: models.TrainingRun) -> str:
    return "failed" if run.corrupted else "ok"


RUN_COLUMNS: dict[str, tuple[str, Callable[[models.TrainingRun], str]]] = {
    "id": ("Run ID", lambda run: run.training_run_id),
    "model": ("Base model", lambda run: run.base_model),
    "owner": ("Owner", lambda run: run.model_owner),
    "lora": ("LoRA", _lora),
    "updated": ("Last update", lambda run: format_time(run.last_request_time)),
    "status": ("Status", _status),
    "checkpoint": ("Last checkpoint", lambda run: run.last_checkpoint.checkpoint_id if run.last_checkpoint else "-"),
    "checkpoint_time": (
        "Checkpoint time",
        lambda run: format_time(run.last_checkpoint.time) if run.last_checkpoint else "-",
    ),
}
"""Columns of the list: heading and content."""


@group("run")
def cli() -> None:
    """List training runs and show their details."""


def _parse_columns(ctx: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in RUN_COLUMNS:
            raise click.BadParameter(f"unknown column {name!r}; choose from {', '.join(RUN_COLUMNS)}", ctx, parameter)
    return names


@cli.command("list")
@click.option("--limit", type=int, default=20, show_default=True, help="Number of runs to show; 0 for all.")
@click.option(
    "--columns",
    "-c",
    default=DEFAULT_COLUMNS,
    show_default=True,
    callback=_parse_columns,
    metavar="LIST",
    help=f"Columns of the table, separated by commas: {', '.join(RUN_COLUMNS)}.",
)
@click.option("--project-id", help="Only runs of this project.")
@pass_options
def _list(options: SharedOptions, limit: int, columns: list[str], project_id: str | None) -> None:
    """List training runs, newest first."""
    with open_rest_client(options) as rest:

        def fetch(page_size: int, offset: int) -> tuple[list[models.TrainingRun], models.Cursor | None]:
            page = rest.list_training_runs(page_size, offset, project_id=project_id).result()
            return page.training_runs, page.cursor

        runs, total = fetch_pages(options, "training runs", fetch, limit, RUNS_PER_PAGE)
    rows = [[RUN_COLUMNS[name][1](run) for name in columns] for run in runs]
    data = {"runs": [run.model_dump(mode="json") for run in runs], "total_count": total}
    title = describe_count(len(runs), total, "training run")
    print_result(options, data, Table([RUN_COLUMNS[name][0] for name in columns], rows, title))


@cli.command("info")
@click.argument("run_id")
@pass_options
def _info(options: SharedOptions, run_id: str) -> None:
    """Show the details of a training run."""
    with open_rest_client(options) as rest:
        run = rest.get_training_run(run_id).result()
    pairs = {
        "Run ID": run.training_run_id,
        "Base model": run.base_model,
        "Owner": run.model_owner,
        "LoRA": _lora(run),
        "Last update": format_time(run.last_request_time),
        "Status": _status(run),
    }
    for name, checkpoint in (
        ("Last checkpoint", run.last_checkpoint),
        ("Last sampler checkpoint", run.last_sampler_checkpoint),
    ):
        if checkpoint is not None:
            pairs[name] = checkpoint.tinker_path
            pairs[f"{name}, time"] = format_time(checkpoint.time)
    for name, value in (run.user_metadata or {}).items():
        pairs[f"Metadata {name}"] = value
    print_result(options, run.model_dump(mode="json"), properties(pairs))
