"""The commands ``tinkerwire checkpoint download`` and ``push-hf``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from .._checkpoints.paths import parse_checkpoint_address
from .client import open_service_client
from .errors import CommandFailed
from .framework import Group, SharedOptions, command, pass_options
from .output import format_size, print_result, progress, properties

if TYPE_CHECKING:
    from .._rest.checkpoint_download import CheckpointFormat


def add_transfer_commands(target: Group) -> None:
    """Add the commands to the group of the commands of checkpoints."""
    target.add_command(_download)
    target.add_command(_push)


@command("download")
@click.argument("checkpoint_path")
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder to create the checkpoint's folder in; by default the current folder.",
)
@click.option("--force", is_flag=True, help="Replace the checkpoint's folder if it exists.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["safetensors", "peft"]),
    help="Keep only files of this format: peft is adapter_config.json with adapter_model.safetensors. By default all "
    "files are kept.",
)
@pass_options
def _download(options: SharedOptions, checkpoint_path: str, output: Path, force: bool, file_format: str | None) -> None:
    """Download the files of a checkpoint.

    CHECKPOINT_PATH is a path such as tinker://RUN/weights/NAME. The folder has the name RUN_weights_NAME and appears
    when all its files are complete. If the download is interrupted, the next one continues where it stopped. Servers
    of wire 0.36.0 and later export training weights first, which starts a session.
    """
    parse_checkpoint_address(checkpoint_path)
    target = output / checkpoint_path.rpartition("://")[2].replace("/", "_")
    if target.exists() and not force:
        raise CommandFailed(f"{target} exists; --force replaces the folder, --output chooses another one")
    with open_service_client(options, "checkpoint download") as service, progress(options, "Downloading", None) as move:
        download = service.download_checkpoint(
            checkpoint_path,
            target,
            file_format=cast("CheckpointFormat | None", file_format),
            overwrite=force,
            on_progress=move,
        ).result()
    data = {
        "checkpoint_path": checkpoint_path,
        "destination": str(target),
        "file_size_bytes": download.size_bytes,
        "files": list(download.files),
    }
    pairs = {
        "Checkpoint": checkpoint_path,
        "Folder": str(target),
        "Files": ", ".join(download.files),
        "Size": format_size(download.size_bytes),
    }
    print_result(options, data, properties(pairs))


@command("push-hf")
@click.argument("checkpoint_path")
@click.option("--repo", "-r", "repo_id", help="Repository, such as user/my-adapter; by default a name from the run.")
@click.option("--public", is_flag=True, help="Make a new repository public; by default it is private.")
@click.option("--revision", help="Branch to upload to; it is created if necessary.")
@click.option("--commit-message", help="Message of the commit.")
@click.option("--create-pr", is_flag=True, help="Open a pull request instead of a commit to the branch.")
@click.option("--allow-pattern", "allow_patterns", multiple=True, help="Upload only matching files; repeatable.")
@click.option("--ignore-pattern", "ignore_patterns", multiple=True, help="Skip matching files; repeatable.")
@click.option("--no-model-card", is_flag=True, help="Write no README.md if the checkpoint has none.")
@pass_options
def _push(
    options: SharedOptions,
    checkpoint_path: str,
    repo_id: str | None,
    public: bool,
    revision: str | None,
    commit_message: str | None,
    create_pr: bool,
    allow_patterns: tuple[str, ...],
    ignore_patterns: tuple[str, ...],
    no_model_card: bool,
) -> None:
    """Upload a checkpoint to the Hugging Face Hub, as an adapter of PEFT.

    Needs the package huggingface_hub and its login (hf auth login).
    """
    with open_service_client(options, "checkpoint push-hf") as service:
        pushed = service.push_to_hub(
            checkpoint_path,
            repo_id,
            private=not public,
            revision=revision,
            commit_message=commit_message,
            create_pr=create_pr,
            allow_patterns=list(allow_patterns) or None,
            ignore_patterns=list(ignore_patterns) or None,
            add_model_card=not no_model_card,
        ).result()
    data = {"checkpoint_path": checkpoint_path, "repo_id": pushed, "revision": revision, "public": public}
    print_result(options, data, properties({"Checkpoint": checkpoint_path, "Repository": pushed, "Revision": revision}))
