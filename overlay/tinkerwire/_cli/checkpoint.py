"""The commands ``tinkerwire checkpoint``: list, info, publish, unpublish, set-ttl and delete."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

import click

from tinkerwire_base.timestamps import parse_timestamp

from .._checkpoints.paths import parse_checkpoint_address
from .client import open_rest_client
from .errors import CommandFailed
from .framework import SharedOptions, group, pass_options
from .output import (
    Table,
    format_flag,
    format_size,
    format_time,
    print_result,
    print_table,
    progress,
    properties,
    report,
)
from .pages import describe_count, fetch_pages
from .transfer import add_transfer_commands

if TYPE_CHECKING:
    from tinkerwire_generated import models

    from .._rest.client import RestClient

CHECKPOINTS_PER_PAGE = 1000
TYPES = {
    "weights": "training",
    "sampler_weights": "sampler",
    "external_weights": "external",
    "training": "training",
    "sampler": "sampler",
    "external": "external",
}
"""Types of checkpoints by the words for them: segments of paths, and types of the wire."""


@group("checkpoint")
def cli() -> None:
    """List, download, publish and delete checkpoints."""


add_transfer_commands(cli)


def _parse_time(ctx: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    text = value.strip()
    try:
        time = parse_timestamp(text if "T" in text or " " in text else f"{text}T00:00:00Z")
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a date or time; write 2026-01-31 or 2026-01-31T08:00:00Z", ctx, parameter
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _table(checkpoints: list[models.Checkpoint], title: str | None) -> Table:
    rows = [
        (
            checkpoint.checkpoint_id,
            str(checkpoint.checkpoint_type or "-"),
            format_size(checkpoint.size_bytes),
            format_flag(checkpoint.public),
            format_time(checkpoint.time),
            format_time(checkpoint.expires_at, "never"),
            checkpoint.tinker_path,
        )
        for checkpoint in checkpoints
    ]
    return Table(("Checkpoint ID", "Type", "Size", "Public", "Created", "Expires", "Path"), rows, title)


@cli.command("list")
@click.option("--run-id", help="Only the checkpoints of this training run.")
@click.option(
    "--limit",
    type=int,
    default=20,
    show_default=True,
    help="Number of checkpoints without --run-id; 0 for all.",
)
@pass_options
def _list(options: SharedOptions, run_id: str | None, limit: int) -> None:
    """List checkpoints, newest first."""
    with open_rest_client(options) as rest:
        if run_id:
            checkpoints = rest.list_checkpoints(run_id).result().checkpoints
            total = len(checkpoints)
        else:

            def fetch(page_size: int, offset: int) -> tuple[list[models.Checkpoint], models.Cursor | None]:
                page = rest.list_user_checkpoints(page_size, offset).result()
                return page.checkpoints, page.cursor

            checkpoints, total = fetch_pages(options, "checkpoints", fetch, limit, CHECKPOINTS_PER_PAGE)
    data: dict[str, Any] = {"run_id": run_id} if run_id else {}
    data |= {"checkpoints": [checkpoint.model_dump(mode="json") for checkpoint in checkpoints], "total_count": total}
    print_result(options, data, _table(checkpoints, describe_count(len(checkpoints), total, "checkpoint")))


@cli.command("info")
@click.argument("checkpoint_path")
@pass_options
def _info(options: SharedOptions, checkpoint_path: str) -> None:
    """Show the details of a checkpoint.

    CHECKPOINT_PATH is a path such as tinker://RUN/weights/NAME.
    """
    with open_rest_client(options) as rest:
        checkpoint = rest.get_checkpoint(checkpoint_path).result()
        run = rest.get_training_run_by_tinker_path(checkpoint_path).result()
    data = {**checkpoint.model_dump(mode="json"), "is_lora": run.is_lora, "lora_rank": run.lora_rank}
    pairs = {
        "Checkpoint ID": checkpoint.checkpoint_id,
        "Type": str(checkpoint.checkpoint_type or "-"),
        "Path": checkpoint.tinker_path,
        "Size": format_size(checkpoint.size_bytes),
        "Public": format_flag(checkpoint.public),
        "Created": format_time(checkpoint.time),
        "Expires": format_time(checkpoint.expires_at, "never"),
        "Training run": run.training_run_id,
        "Base model": run.base_model,
        "LoRA": f"rank {run.lora_rank}" if run.is_lora and run.lora_rank else format_flag(run.is_lora),
    }
    for name, value in (checkpoint.user_metadata or {}).items():
        pairs[f"Metadata {name}"] = value
    print_result(options, data, properties(pairs))


@cli.command("publish")
@click.argument("checkpoint_path")
@pass_options
def _publish(options: SharedOptions, checkpoint_path: str) -> None:
    """Publish a checkpoint, so that every user can read it."""
    with open_rest_client(options) as rest:
        rest.publish_checkpoint_from_tinker_path(checkpoint_path).result()
    print_result(options, {"checkpoint_path": checkpoint_path, "public": True}, f"Published {checkpoint_path}.")


@cli.command("unpublish")
@click.argument("checkpoint_path")
@pass_options
def _unpublish(options: SharedOptions, checkpoint_path: str) -> None:
    """Make a published checkpoint private."""
    with open_rest_client(options) as rest:
        rest.unpublish_checkpoint_from_tinker_path(checkpoint_path).result()
    print_result(options, {"checkpoint_path": checkpoint_path, "public": False}, f"Unpublished {checkpoint_path}.")


@cli.command("set-ttl")
@click.argument("checkpoint_path")
@click.option("--ttl", type=int, metavar="SECONDS", help="Delete the checkpoint after this time, from an hour on.")
@click.option("--remove", is_flag=True, help="Keep the checkpoint.")
@pass_options
def _set_ttl(options: SharedOptions, checkpoint_path: str, ttl: int | None, remove: bool) -> None:
    """Set or remove the expiry of a checkpoint."""
    if (ttl is None) != remove:
        raise click.UsageError("give either --ttl SECONDS or --remove")
    with open_rest_client(options) as rest:
        rest.set_checkpoint_ttl_from_tinker_path(checkpoint_path, ttl).result()
    text = f"{checkpoint_path} stays." if ttl is None else f"{checkpoint_path} expires in {ttl} seconds."
    print_result(options, {"checkpoint_path": checkpoint_path, "ttl_seconds": ttl}, text)


@cli.command("delete")
@click.argument("checkpoint_paths", nargs=-1)
@click.option("--run-id", help="Delete the checkpoints of this training run.")
@click.option(
    "--type",
    "checkpoint_type",
    type=click.Choice(list(TYPES)),
    metavar="TYPE",
    help="With --run-id: only weights, sampler_weights or external_weights.",
)
@click.option(
    "--before",
    callback=_parse_time,
    metavar="TIME",
    help="With --run-id: only those saved before this time.",
)
@click.option("--after", callback=_parse_time, metavar="TIME", help="With --run-id: only those saved after this time.")
@click.option("--yes", "-y", is_flag=True, help="Delete without a question.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@pass_options
def _delete(
    options: SharedOptions,
    checkpoint_paths: tuple[str, ...],
    run_id: str | None,
    checkpoint_type: str | None,
    before: datetime | None,
    after: datetime | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete checkpoints permanently.

    Give either CHECKPOINT_PATHS, or --run-id with optional conditions. TIME is a date or time in UTC, such as
    2026-01-31 or 2026-01-31T08:00:00Z.
    """
    if bool(checkpoint_paths) == bool(run_id):
        raise click.UsageError("give either CHECKPOINT_PATHS or --run-id")
    if not run_id and (checkpoint_type or before or after):
        raise click.UsageError("--type, --before and --after need --run-id")
    for path in checkpoint_paths:
        # Before the question, so that a wrong path does not come after a yes.
        parse_checkpoint_address(path, name="CHECKPOINT_PATHS")
    with open_rest_client(options) as rest:
        if run_id:
            kind = cast("models.CheckpointType | None", TYPES[checkpoint_type] if checkpoint_type else None)
            found = rest.find_checkpoints(run_id, kind, before=before, after=after).result()
            paths = [checkpoint.tinker_path for checkpoint in found]
            size = sum(checkpoint.size_bytes or 0 for checkpoint in found)
            summary = _table(found, f"{_count(len(found))} of run {run_id}, {format_size(size)}")
        else:
            paths = list(dict.fromkeys(checkpoint_paths))
            summary = Table(("Path",), [(path,) for path in paths], _count(len(paths)))
        _delete_paths(options, rest, paths, summary, asks=not yes, dry_run=dry_run)


def _count(number: int) -> str:
    return f"{number} checkpoint{'s' * (number != 1)}"


def _delete_paths(
    options: SharedOptions, rest: RestClient, paths: list[str], summary: Table, *, asks: bool, dry_run: bool
) -> None:
    data: dict[str, Any] = {"dry_run": dry_run, "paths": paths, "deleted_count": 0, "failed": []}
    if not paths:
        print_result(options, data, "No checkpoints match.")
        return
    if dry_run:
        print_result(options, data, summary)
        report(options, "Nothing was deleted; omit --dry-run to delete these checkpoints.")
        return
    if asks:
        print_table(summary, err=True)
        if sys.stdin is None:
            raise CommandFailed("standard input is closed; --yes answers without a question")
        if not click.confirm(f"Delete {_count(len(paths))} permanently?", err=True):
            raise CommandFailed("nothing was deleted")
    with progress(options, "Deleting", len(paths)) as advance:
        deletion = rest.delete_checkpoints(paths, on_progress=advance).result()
    data["deleted_count"] = len(deletion.deleted)
    data["failed"] = [{"tinker_path": path, "error": str(error)} for path, error in deletion.failed.items()]
    print_result(options, data, f"Deleted {len(deletion.deleted)} of {_count(len(paths))}.")
    for path, error in deletion.failed.items():
        report(options, f"{path}: {error}")
    if deletion.failed:
        raise CommandFailed(f"{len(deletion.failed)} of {_count(len(paths))} could not be deleted; see above")
