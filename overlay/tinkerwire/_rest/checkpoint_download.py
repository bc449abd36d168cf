"""Downloads of checkpoints into folders."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import attrs

from tinkerwire_base.errors import DialectError, TinkerError
from tinkerwire_base.validators import require_bool, validator_of
from tinkerwire_generated import models
from tinkerwire_generated.api.runs import get_external_weights_urls

from .._checkpoints.paths import CheckpointAddress, parse_checkpoint_address, parse_checkpoint_kind
from .._connection.connection import Connection
from .._transport.address import is_embedded, parse_http_url
from .._transport.backpressure import Traffic
from .archives import fetch_archive_url, path_of_file_url
from .download_arguments import absolute_path, require_limit, require_optional_callback
from .extraction import MAX_FILES, check_relative_path, extract_archive
from .file_download import PART, STATE, download_file, exclusive_download

CheckpointFormat = Literal["safetensors", "peft"]

DEFAULT_MAX_BYTES = 256 * 2**30
"""Default limit of the size of a checkpoint."""
RENEW_BEFORE = timedelta(minutes=5)
"""Time before the expiry of signed URLs at which new ones are requested."""
PEFT_CONFIG = "adapter_config.json"
PEFT_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
ARCHIVE = "archive"
PATH_FILE = "checkpoint"
"""File of the hidden folder with the path of its checkpoint."""
FILES = "files"


@attrs.frozen
class CheckpointDownload:
    """A downloaded checkpoint."""

    tinker_path: str
    directory: Path
    """The folder with the files."""
    files: tuple[str, ...]
    """Paths of the files below the folder, with slashes."""
    size_bytes: int
    """Size of the files in bytes."""


@attrs.frozen(kw_only=True)
class DownloadPlan:
    """Content and target of a download; see also the arguments of :meth:`RestClient.download_checkpoint`.

    Args:
        address: ids of the checkpoint.
        is_external: True for weights that save_weights_external saved.
    """

    tinker_path: str
    address: CheckpointAddress
    is_external: bool
    directory: Path
    file_format: CheckpointFormat | None
    overwrite: bool
    max_bytes: int
    on_progress: Callable[[int], object] | None


def make_plan(
    tinker_path: str,
    directory: str | Path,
    *,
    file_format: CheckpointFormat | None,
    overwrite: bool,
    max_bytes: int,
    on_progress: Callable[[int], object] | None,
) -> DownloadPlan:
    """Check the arguments of a download; raise TypeError or ValueError for an invalid one."""
    address = parse_checkpoint_address(tinker_path)
    if file_format is not None:
        validator_of(CheckpointFormat)("file_format", file_format)
    require_bool("overwrite", overwrite)
    require_limit("max_bytes", max_bytes)
    require_optional_callback("on_progress", on_progress)
    return DownloadPlan(
        tinker_path=tinker_path,
        address=address,
        is_external=parse_checkpoint_kind(tinker_path) == "external",
        directory=absolute_path("directory", directory),
        file_format=file_format,
        overwrite=overwrite,
        max_bytes=max_bytes,
        on_progress=on_progress,
    )


async def download_checkpoint(connection: Connection, plan: DownloadPlan) -> CheckpointDownload:
    """Download a checkpoint; the folder appears when all its files are complete.

    Until then the files are in a hidden folder beside it, where the next download of the checkpoint continues.

    Raises:
        FileExistsError: the folder exists, and ``overwrite`` is False.
        DialectError: the wire of the server does not have the call.
        APIStatusError, APIConnectionError: the download failed.
        TinkerError: a file has an unsafe name or a wrong hash, the checkpoint is not in the requested format, or
            another download into the folder is under way.
    """
    target = plan.directory
    require_new_folder(target, overwrite=plan.overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_download(target):
        _restore(target)
        require_new_folder(target, overwrite=plan.overwrite)
        staging = target.with_name(f".{target.name}.part")
        files = staging / FILES
        try:
            await asyncio.to_thread(_prepare, staging, plan.tinker_path)
            if plan.is_external:
                await _download_files(connection, plan, files)
            else:
                await _download_archive(connection, plan, staging, files)
            return await asyncio.to_thread(_finish, plan, staging, files)
        except OSError as error:
            if error.errno is not None and error.filename is None:
                # A failed write, as to a full disk, does not name its file.
                error.filename = str(staging)
            raise


def require_new_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise FileExistsError if something exists that must not be replaced."""
    if os.path.lexists(folder) and not overwrite:
        raise FileExistsError(f"{folder} exists; choose another folder, or overwrite it")
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        raise FileExistsError(f"{folder} exists and is not a folder; choose another one")


def _replaced(target: Path) -> Path:
    """Return the name that a folder has while another one takes its place."""
    return target.with_name(f".{target.name}.old")


def _restore(target: Path) -> None:
    """Undo or complete the replacement of a folder, if the process ended in the middle."""
    replaced = _replaced(target)
    if replaced.exists() and not target.exists():
        replaced.rename(target)
    shutil.rmtree(replaced, ignore_errors=True)


async def _download_archive(connection: Connection, plan: DownloadPlan, staging: Path, files: Path) -> None:
    run_id, checkpoint_id = plan.address.training_run_id, plan.address.checkpoint_id

    async def get_url() -> str:
        try:
            return (await fetch_archive_url(connection, run_id, checkpoint_id)).url
        except DialectError as error:
            raise DialectError(
                f"{error}; ServiceClient.download_checkpoint downloads training weights as an export"
            ) from None

    if is_embedded(connection.base_url) and (url := await get_url()).startswith("file:"):
        # In process, the server gives the path of its own file.
        source = path_of_file_url(url)
        shutil.rmtree(files, ignore_errors=True)
        await asyncio.to_thread(_copy, source, files / source.name, plan.max_bytes)
        return
    archive = staging / ARCHIVE
    await _fetch(get_url, archive, plan, plan.max_bytes)
    await asyncio.to_thread(_extract, archive, files, plan)


def _prepare(staging: Path, tinker_path: str) -> None:
    """Make the hidden folder, and discard that of another checkpoint."""
    owner = staging / PATH_FILE
    if staging.exists() and (not owner.exists() or owner.read_text(encoding="utf-8") != tinker_path):
        shutil.rmtree(staging)
    staging.mkdir(parents=True, exist_ok=True)
    owner.write_text(tinker_path, encoding="utf-8")


def _extract(archive: Path, files: Path, plan: DownloadPlan) -> None:
    shutil.rmtree(files, ignore_errors=True)
    try:
        extract_archive(archive, files, max_bytes=plan.max_bytes)
    except TinkerError:
        # A damaged archive must not be continued.
        shutil.rmtree(archive.parent, ignore_errors=True)
        raise
    except OSError:
        # The disk may be full: make room, and keep the archive for the next download.
        shutil.rmtree(files, ignore_errors=True)
        raise


async def _download_files(connection: Connection, plan: DownloadPlan, files: Path) -> None:
    call = get_external_weights_urls(plan.address.training_run_id, plan.address.checkpoint_id)

    async def sign() -> models.ExternalWeightsUrlsResponse:
        return await connection.call(call, Traffic.REST)

    signed = await sign()
    if not signed.urls:
        raise TinkerError(f"{plan.tinker_path} has no files")
    if len(signed.urls) > MAX_FILES:
        raise TinkerError(f"{plan.tinker_path} has more than {MAX_FILES} files; they are not downloaded")
    paths = {name: check_relative_path(name) for name in sorted(signed.urls)}
    await asyncio.to_thread(_remove_others, files, set(paths.values()))
    remaining = plan.max_bytes
    for name, path in paths.items():
        file = files / path

        async def get_url(name: str = name) -> str:
            nonlocal signed
            if signed.expires is not None and datetime.now(timezone.utc) >= signed.expires - RENEW_BEFORE:
                signed = await sign()
            if name not in signed.urls:
                raise TinkerError(f"{plan.tinker_path} no longer has the file {name!r:.200}")
            return signed.urls[name]

        if is_embedded(connection.base_url) and (url := await get_url()).startswith("file:"):
            size = await asyncio.to_thread(_copy, path_of_file_url(url), file, remaining)
        else:
            size = await _fetch(get_url, file, plan, remaining)
        remaining -= size


def _remove_others(files: Path, kept: Collection[Path]) -> None:
    """Remove files of an earlier download that the checkpoint no longer has."""
    for file in [path for path in files.rglob("*") if path.is_file()]:
        path = file.relative_to(files)
        if path not in kept and path.with_name(path.name.removesuffix(STATE).removesuffix(PART)) not in kept:
            file.unlink()


async def _fetch(get_url: Callable[[], Awaitable[str]], file: Path, plan: DownloadPlan, max_bytes: int) -> int:
    async def get_http_url() -> str:
        url = await get_url()
        if parse_http_url(url) is None:
            raise TinkerError(f"the URL of the checkpoint must be http or https, got {urlsplit(url).scheme or 'none'}")
        return url

    # The state stays until the folder is complete: a next download then requests no file again.
    return await download_file(get_http_url, file, max_bytes=max_bytes, on_progress=plan.on_progress, keeps_state=True)


def _copy(source: Path, file: Path, max_bytes: int) -> int:
    size = source.stat().st_size
    if size > max_bytes:
        raise TinkerError(f"the checkpoint has more than {max_bytes} bytes; raise max_bytes")
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, file)
    return size


def _finish(plan: DownloadPlan, staging: Path, files: Path) -> CheckpointDownload:
    """Keep the files of the format, and move the folder into its place."""
    for path in [path for path in files.rglob(f"*{STATE}") if path.with_name(path.name.removesuffix(STATE)).exists()]:
        path.unlink()
    if plan.file_format is not None:
        _keep_format(plan.file_format, files, plan.tinker_path)
    paths = sorted(path for path in files.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in paths)
    names = tuple(path.relative_to(files).as_posix() for path in paths)
    target = plan.directory
    if target.exists():
        replaced = _replaced(target)
        target.rename(replaced)
        files.rename(target)
        shutil.rmtree(replaced, ignore_errors=True)
    else:
        files.rename(target)
    shutil.rmtree(staging, ignore_errors=True)
    return CheckpointDownload(plan.tinker_path, target, names, size)


def _keep_format(file_format: CheckpointFormat, files: Path, tinker_path: str) -> None:
    """Remove files that do not belong to a format.

    Raises:
        TinkerError: the checkpoint does not have the format.
    """
    names = sorted(path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file())
    if file_format == "safetensors":
        kept = {name for name in names if name.endswith(".safetensors")}
        is_complete, expected = bool(kept), "*.safetensors"
    else:
        weights = [name for name in PEFT_WEIGHTS if name in names][:1]
        kept = {PEFT_CONFIG, *weights}
        is_complete, expected = PEFT_CONFIG in names and bool(weights), f"{PEFT_CONFIG} and {PEFT_WEIGHTS[0]}"
    if not is_complete:
        raise TinkerError(
            f"{tinker_path} is not in the format {file_format}: expected {expected}, got {', '.join(names)[:200]}; "
            "omit the format to keep all files"
        )
    for name in set(names) - kept:
        (files / name).unlink()
