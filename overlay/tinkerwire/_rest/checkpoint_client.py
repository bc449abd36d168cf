"""Checkpoints of a RestClient: search, deletion of several, and downloads to files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timezone
from pathlib import Path

import attrs

from tinkerwire_base.errors import TinkerError
from tinkerwire_base.validators import require_optional, require_text, validator_of
from tinkerwire_generated import models
from tinkerwire_generated.api import runs as runs_api

from .._checkpoints.paths import parse_checkpoint_address
from .._futures.future import APIFuture
from .._transport.backpressure import Traffic
from .admin import AdminClient
from .checkpoint_download import (
    DEFAULT_MAX_BYTES,
    CheckpointDownload,
    CheckpointFormat,
    download_checkpoint,
    make_plan,
)
from .download_arguments import absolute_path, read_texts, require_limit, require_optional_callback
from .file_download import download_file, exclusive_download
from .traces import export_trace

CONCURRENT_DELETIONS = 16
"""Number of deletions that are under way at once."""


@attrs.frozen
class CheckpointDeletion:
    """Result of :meth:`RestClient.delete_checkpoints`."""

    deleted: tuple[str, ...]
    """Paths of the deleted checkpoints."""
    failed: dict[str, TinkerError]
    """Errors by the path of their checkpoint."""


class CheckpointClient(AdminClient):
    """Methods of RestClient that search, delete and download checkpoints."""

    def get_checkpoint(self, tinker_path: str) -> APIFuture[models.Checkpoint]:
        """Return the checkpoint at a path, from the list of its run.

        Raises:
            ValueError: the path does not name a run; nothing was sent.
            TinkerError: raised by the future; the run does not have the checkpoint.
        """
        address = parse_checkpoint_address(tinker_path)

        async def find() -> models.Checkpoint:
            listing = await self._connection.call(runs_api.list_checkpoints(address.training_run_id), Traffic.REST)
            for checkpoint in listing.checkpoints:
                if checkpoint.tinker_path == tinker_path or checkpoint.checkpoint_id == address.checkpoint_id:
                    return checkpoint
            raise TinkerError(f"get_checkpoint: {tinker_path!r:.200} does not exist; see list_checkpoints")

        return self._connection.start(find, "get_checkpoint")

    async def get_checkpoint_async(self, tinker_path: str) -> models.Checkpoint:
        """Await :meth:`get_checkpoint`, and return its result."""
        return await self.get_checkpoint(tinker_path)

    def find_checkpoints(
        self,
        training_run_id: str,
        checkpoint_type: models.CheckpointType | None = None,
        *,
        before: datetime | None = None,
        after: datetime | None = None,
    ) -> APIFuture[list[models.Checkpoint]]:
        """Return the checkpoints of a run that match all conditions.

        Args:
            training_run_id: the run.
            checkpoint_type: training, sampler or external; None for all.
            before: only checkpoints saved before this time; without a time zone it counts as UTC.
            after: only checkpoints saved after this time.

        Raises:
            ValueError, TypeError: an invalid type or time; nothing was sent.
        """
        require_text("training_run_id", training_run_id)
        if checkpoint_type is not None:
            validator_of(models.CheckpointType)("checkpoint_type", checkpoint_type)
        require_optional("before", before, datetime)
        require_optional("after", after, datetime)
        latest, earliest = _in_utc(before), _in_utc(after)

        async def find() -> list[models.Checkpoint]:
            listing = await self._connection.call(runs_api.list_checkpoints(training_run_id), Traffic.REST)
            found = []
            for checkpoint in listing.checkpoints:
                time = _in_utc(checkpoint.time)
                if checkpoint_type is not None and checkpoint.checkpoint_type != checkpoint_type:
                    continue
                # A checkpoint without a time matches no condition on the time.
                if latest is not None and (time is None or time >= latest):
                    continue
                if earliest is not None and (time is None or time <= earliest):
                    continue
                found.append(checkpoint)
            return found

        return self._connection.start(find, "find_checkpoints")

    async def find_checkpoints_async(
        self,
        training_run_id: str,
        checkpoint_type: models.CheckpointType | None = None,
        *,
        before: datetime | None = None,
        after: datetime | None = None,
    ) -> list[models.Checkpoint]:
        """Await :meth:`find_checkpoints`, and return its result."""
        return await self.find_checkpoints(training_run_id, checkpoint_type, before=before, after=after)

    def delete_checkpoints(
        self, tinker_paths: Collection[str], *, on_progress: Callable[[int], object] | None = None
    ) -> APIFuture[CheckpointDeletion]:
        """Delete checkpoints permanently, several at once; an error does not stop the others.

        Args:
            tinker_paths: paths of the checkpoints; repeated paths count once.
            on_progress: called with 1 after each checkpoint, on the client's thread.

        Raises:
            ValueError, TypeError: a path does not name a run and a checkpoint; nothing was deleted.
        """
        paths = read_texts("tinker_paths", tinker_paths)
        require_optional_callback("on_progress", on_progress)
        addresses = {path: parse_checkpoint_address(path, name="tinker_paths") for path in paths}

        async def delete_all() -> CheckpointDeletion:
            slots = asyncio.Semaphore(CONCURRENT_DELETIONS)
            failed: dict[str, TinkerError] = {}

            async def delete(path: str) -> None:
                address = addresses[path]
                call = runs_api.delete_checkpoint(address.training_run_id, address.checkpoint_id)
                async with slots:
                    try:
                        await self._connection.call(call, Traffic.REST)
                    except TinkerError as error:
                        failed[path] = error
                if on_progress:
                    on_progress(1)

            await asyncio.gather(*map(delete, addresses))
            return CheckpointDeletion(tuple(path for path in addresses if path not in failed), failed)

        return self._connection.start(delete_all, "delete_checkpoints")

    async def delete_checkpoints_async(
        self, tinker_paths: Collection[str], *, on_progress: Callable[[int], object] | None = None
    ) -> CheckpointDeletion:
        """Await :meth:`delete_checkpoints`, and return its result."""
        return await self.delete_checkpoints(tinker_paths, on_progress=on_progress)

    def download_checkpoint(
        self,
        tinker_path: str,
        directory: str | Path,
        *,
        file_format: CheckpointFormat | None = None,
        overwrite: bool = False,
        max_bytes: int = DEFAULT_MAX_BYTES,
        on_progress: Callable[[int], object] | None = None,
    ) -> APIFuture[CheckpointDownload]:
        """Download the files of a checkpoint into a new folder.

        An interrupted download continues where it stopped, if the server supports ranges. Sizes and hashes are
        verified where the server sends them. The folder appears when all files are complete. Paths that leave the
        folder, links and devices are rejected.

        Args:
            tinker_path: path of the checkpoint. Servers of wire 0.36.0 and later have the files of external weights
                only; :meth:`ServiceClient.download_checkpoint` exports other weights first.
            directory: the folder to create.
            file_format: ``peft`` keeps the adapter of PEFT, ``safetensors`` all safetensors; None keeps all files.
            overwrite: replace the folder if it exists.
            max_bytes: maximum size of the archive, and of all files.
            on_progress: called with the number of received bytes after each piece, on the client's thread; the
                number is negative when the download starts anew.

        Raises:
            ValueError, TypeError: an invalid argument; nothing was sent.
            FileExistsError: raised by the future; the folder exists, and ``overwrite`` is False.
            DialectError: raised by the future; the wire of the server does not have the call.
            TinkerError: raised by the future; the download failed, or the checkpoint is not in the format.
        """
        plan = make_plan(
            tinker_path,
            directory,
            file_format=file_format,
            overwrite=overwrite,
            max_bytes=max_bytes,
            on_progress=on_progress,
        )
        return self._connection.start(lambda: download_checkpoint(self._connection, plan), "download_checkpoint")

    async def download_checkpoint_async(
        self,
        tinker_path: str,
        directory: str | Path,
        *,
        file_format: CheckpointFormat | None = None,
        overwrite: bool = False,
        max_bytes: int = DEFAULT_MAX_BYTES,
        on_progress: Callable[[int], object] | None = None,
    ) -> CheckpointDownload:
        """Await :meth:`download_checkpoint`, and return its result."""
        return await self.download_checkpoint(
            tinker_path,
            directory,
            file_format=file_format,
            overwrite=overwrite,
            max_bytes=max_bytes,
            on_progress=on_progress,
        )

    def download_session_trace(
        self,
        session_id: str,
        file: str | Path,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        on_progress: Callable[[int], object] | None = None,
    ) -> APIFuture[int]:
        """Export the trace of a session, download it to a file, and return its size in bytes; wire 0.24.1 and later.

        Args:
            session_id: the session.
            file: the file, which appears when it is complete; https://ui.perfetto.dev opens it.
            max_bytes: maximum size.
            on_progress: called with the number of received bytes after each piece, on the client's thread.

        Raises:
            TinkerError: raised by the future; the export or the download failed.
        """
        require_text("session_id", session_id)
        require_limit("max_bytes", max_bytes)
        require_optional_callback("on_progress", on_progress)
        target = absolute_path("file", file)

        async def get_url() -> str:
            return await export_trace(self._connection, session_id)

        async def fetch() -> int:
            target.parent.mkdir(parents=True, exist_ok=True)
            with exclusive_download(target):
                return await download_file(get_url, target, max_bytes=max_bytes, on_progress=on_progress)

        return self._connection.start(fetch, "download_session_trace")

    async def download_session_trace_async(
        self,
        session_id: str,
        file: str | Path,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        on_progress: Callable[[int], object] | None = None,
    ) -> int:
        """Await :meth:`download_session_trace`, and return its result."""
        return await self.download_session_trace(session_id, file, max_bytes=max_bytes, on_progress=on_progress)


def _in_utc(time: datetime | None) -> datetime | None:
    return time.replace(tzinfo=timezone.utc) if time is not None and time.tzinfo is None else time
