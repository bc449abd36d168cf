"""Transfers of checkpoints from the server to folders and to the Hugging Face Hub, with an export where necessary."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from tinkerwire_base.errors import DialectError
from tinkerwire_base.validators import require_bool, require_optional_text

from .._checkpoints.paths import parse_checkpoint_address, parse_checkpoint_kind
from .._extras import require_packages
from .._futures.event_loop import LOOP
from .._futures.future import APIFuture
from .._futures.logger import log
from .client_creation import TrainingClientFactory

if TYPE_CHECKING:
    from .._rest.checkpoint_download import CheckpointDownload, CheckpointFormat, DownloadPlan
    from .._rest.client import RestClient
    from .._rest.hub import HubTarget

EXPORT_NAME = "download"
EXPORT_TTL_S = 3600
"""Lifetime of an export, in case that its deletion fails."""


class CheckpointTransfer(TrainingClientFactory):
    """Methods of ServiceClient that download and upload checkpoints of all kinds."""

    def download_checkpoint(
        self,
        tinker_path: str,
        directory: str | Path,
        *,
        file_format: CheckpointFormat | None = None,
        overwrite: bool = False,
        max_bytes: int | None = None,
        on_progress: Callable[[int], object] | None = None,
    ) -> APIFuture[CheckpointDownload]:
        """Download the files of a checkpoint into a new folder.

        Servers of wire 0.36.0 and later have the files of external weights only. For training weights this method
        loads them into a new model, exports the model, downloads the export, and deletes the export.

        Arguments and errors as for :meth:`RestClient.download_checkpoint`; a ``max_bytes`` of None is 256 GiB.
        """
        rest = self._create_rest_client()
        from .._rest.checkpoint_download import (  # noqa: PLC0415
            DEFAULT_MAX_BYTES,
            download_checkpoint,
            make_plan,
        )

        plan = make_plan(
            tinker_path,
            directory,
            file_format=file_format,
            overwrite=overwrite,
            max_bytes=DEFAULT_MAX_BYTES if max_bytes is None else max_bytes,
            on_progress=on_progress,
        )
        connection = self._session.connection

        async def transfer() -> CheckpointDownload:
            try:
                return await download_checkpoint(connection, plan)
            except DialectError:
                # The server has no archives. If its version is not known, only its response shows that.
                if parse_checkpoint_kind(tinker_path) != "training":
                    raise
            return await self._export(rest, plan)

        return connection.start(transfer, "download_checkpoint")

    async def download_checkpoint_async(
        self,
        tinker_path: str,
        directory: str | Path,
        *,
        file_format: CheckpointFormat | None = None,
        overwrite: bool = False,
        max_bytes: int | None = None,
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

    def push_to_hub(
        self,
        tinker_path: str,
        repo_id: str | None = None,
        *,
        private: bool = True,
        revision: str | None = None,
        commit_message: str | None = None,
        create_pr: bool = False,
        allow_patterns: Collection[str] | None = None,
        ignore_patterns: Collection[str] | None = None,
        add_model_card: bool = True,
    ) -> APIFuture[str]:
        """Upload a checkpoint to the Hugging Face Hub as an adapter of PEFT, and return the id of the repository.

        Needs the package huggingface_hub and its login, and a server whose checkpoints hold adapters of PEFT.

        Args:
            tinker_path: path of the checkpoint.
            repo_id: the repository; None derives a name from the base model and the run.
            private: whether a new repository is private.
            revision: branch to upload to, which is created; None for the main branch, or, if ``repo_id`` is None, for a
                branch with the name of the checkpoint.
            commit_message: message of the commit.
            create_pr: open a pull request instead.
            allow_patterns: upload only files that match one of them.
            ignore_patterns: skip files that match one of them.
            add_model_card: write README.md if the checkpoint has none.

        Raises:
            ImportError: huggingface_hub is not installed.
            ValueError, TypeError: an invalid path; nothing was sent.
            TinkerError: raised by the future; the login, the download or the upload failed.
        """
        parse_checkpoint_address(tinker_path)
        for name, text in (("repo_id", repo_id), ("revision", revision), ("commit_message", commit_message)):
            require_optional_text(name, text)
        for name, flag in (("private", private), ("create_pr", create_pr), ("add_model_card", add_model_card)):
            require_bool(name, flag)
        with LOOP.opening_lock:
            from .._rest.download_arguments import read_texts  # noqa: PLC0415
            from .._rest.hub import HubTarget  # noqa: PLC0415
        allowed = None if allow_patterns is None else read_texts("allow_patterns", allow_patterns)
        ignored = None if ignore_patterns is None else read_texts("ignore_patterns", ignore_patterns)
        require_packages("push_to_hub", "hub", "huggingface_hub")

        target = HubTarget(
            repo_id=repo_id,
            private=private,
            revision=revision,
            commit_message=commit_message,
            create_pr=create_pr,
            allow_patterns=allowed,
            ignore_patterns=ignored,
            add_model_card=add_model_card,
        )
        return self._session.connection.start(lambda: self._push(tinker_path, target), "push_to_hub")

    async def push_to_hub_async(
        self,
        tinker_path: str,
        repo_id: str | None = None,
        *,
        private: bool = True,
        revision: str | None = None,
        commit_message: str | None = None,
        create_pr: bool = False,
        allow_patterns: Collection[str] | None = None,
        ignore_patterns: Collection[str] | None = None,
        add_model_card: bool = True,
    ) -> str:
        """Await :meth:`push_to_hub`, and return its result."""
        return await self.push_to_hub(
            tinker_path,
            repo_id,
            private=private,
            revision=revision,
            commit_message=commit_message,
            create_pr=create_pr,
            allow_patterns=allow_patterns,
            ignore_patterns=ignore_patterns,
            add_model_card=add_model_card,
        )

    def _create_rest_client(self) -> RestClient:
        with LOOP.opening_lock:
            from .._rest.client import RestClient  # noqa: PLC0415

        return RestClient(_connection=self._session.connection)

    async def _export(self, rest: RestClient, plan: DownloadPlan) -> CheckpointDownload:
        """Download training weights through a temporary export."""
        from .._rest.checkpoint_download import download_checkpoint  # noqa: PLC0415

        training = await self.create_training_client_from_state_async(plan.tinker_path)
        saved = await training.save_weights_external(EXPORT_NAME, ttl_seconds=EXPORT_TTL_S)
        export = attrs.evolve(
            plan, tinker_path=saved.path, address=parse_checkpoint_address(saved.path), is_external=True
        )
        try:
            result = await download_checkpoint(self._session.connection, export)
            return attrs.evolve(result, tinker_path=plan.tinker_path)
        finally:
            deletion = await rest.delete_checkpoints([saved.path])
            for error in deletion.failed.values():
                log.warning("the export %s expires in %d s; its deletion failed: %s", saved.path, EXPORT_TTL_S, error)

    async def _push(self, tinker_path: str, target: HubTarget) -> str:
        from .._rest.hub import check_login, upload  # noqa: PLC0415

        await asyncio.to_thread(check_login)
        rest = self._create_rest_client()
        weights = await rest.get_weights_info_by_tinker_path(tinker_path)
        with tempfile.TemporaryDirectory() as folder:
            download = await self.download_checkpoint(tinker_path, Path(folder) / "adapter")
            return await asyncio.to_thread(upload, download.directory, tinker_path, weights, target)
