"""RestClient: training runs, checkpoints and sessions."""

from __future__ import annotations

import os
from typing import Literal

from tinkerwire_base.unset import UNSET, UnsetType
from tinkerwire_base.validators import require_int, require_optional_text, validator_of
from tinkerwire_generated import models
from tinkerwire_generated.api import runs as runs_api
from tinkerwire_generated.api.sampling import get_sampler
from tinkerwire_generated.api.session import assign_session_project, get_session, list_sessions, search_sessions
from tinkerwire_generated.api.weights import weights_info

from .._checkpoints.access_token import validate_access_token
from .._checkpoints.paths import parse_checkpoint_address, parse_checkpoint_kind, validate_path
from .._futures.future import APIFuture
from .archives import download_archive, fetch_archive_url
from .checkpoint_client import CheckpointClient
from .identity import read_identity
from .traces import export_trace
from .weights_copy import copy_weights_to_project

Scope = Literal["owned", "accessible"]


class RestClient(CheckpointClient):
    """Client for training runs, checkpoints and sessions; it also has the methods of AdminClient.

    Every method sends its request at once and returns a future, which raises the errors of the server. Methods whose
    name ends with ``from_tinker_path`` or ``by_tinker_path`` raise ValueError for a path that does not name a run.

    Example:
        >>> service = tinker.ServiceClient(base_url="local")
        >>> rest = service.create_rest_client()
        >>> page = rest.list_training_runs(limit=5).result()
        >>> page.cursor.offset
        0
        >>> service.close().result()
    """

    def whoami(self) -> APIFuture[models.WhoamiResponse]:
        """Return the user and the organization that the token names.

        Raises:
            RuntimeError: raised by the future; an API key, unlike a token, does not identify the user.
        """
        return self._connection.start(lambda: read_identity(self._connection), "whoami")

    async def whoami_async(self) -> models.WhoamiResponse:
        """Await :meth:`whoami`, and return its result."""
        return await self.whoami()

    def get_training_run(self, training_run_id: str, access_scope: Scope = "owned") -> APIFuture[models.TrainingRun]:
        """Return one training run; its id is the id of the model."""
        return self._start_call(runs_api.get_training_run(training_run_id, access_scope=_scope(access_scope)))

    async def get_training_run_async(self, training_run_id: str, access_scope: Scope = "owned") -> models.TrainingRun:
        """Await :meth:`get_training_run`, and return its result."""
        return await self.get_training_run(training_run_id, access_scope)

    def get_training_run_by_tinker_path(
        self, tinker_path: str, access_scope: Scope = "owned"
    ) -> APIFuture[models.TrainingRun]:
        """Return the training run of a checkpoint. Raises ValueError for a path without a run."""
        return self.get_training_run(parse_checkpoint_address(tinker_path).training_run_id, access_scope)

    async def get_training_run_by_tinker_path_async(
        self, tinker_path: str, access_scope: Scope = "owned"
    ) -> models.TrainingRun:
        """Await :meth:`get_training_run_by_tinker_path`, and return its result."""
        return await self.get_training_run_by_tinker_path(tinker_path, access_scope)

    def get_weights_info_by_tinker_path(self, tinker_path: str) -> APIFuture[models.WeightsInfoResponse]:
        """Return the base model and the adapter of the weights at a path."""
        validate_path(tinker_path, name="tinker_path")
        return self._start_call(weights_info(body=models.WeightsInfoRequest(tinker_path=tinker_path)))

    async def get_weights_info_by_tinker_path_async(self, tinker_path: str) -> models.WeightsInfoResponse:
        """Await :meth:`get_weights_info_by_tinker_path`, and return its result."""
        return await self.get_weights_info_by_tinker_path(tinker_path)

    def list_training_runs(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned", project_id: str | None = None
    ) -> APIFuture[models.TrainingRunsResponse]:
        """Return one page of training runs, newest first, with a cursor; ``project_id=None`` lists all projects."""
        require_optional_text("project_id", project_id)
        call = runs_api.list_training_runs(
            **_page(limit, offset),
            access_scope=_scope(access_scope),
            project_id=UNSET if project_id is None else project_id,
        )
        return self._start_call(call)

    async def list_training_runs_async(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned", project_id: str | None = None
    ) -> models.TrainingRunsResponse:
        """Await :meth:`list_training_runs`, and return its result."""
        return await self.list_training_runs(limit, offset, access_scope, project_id)

    def list_checkpoints(self, training_run_id: str) -> APIFuture[models.CheckpointsListResponse]:
        """Return all checkpoints of one training run."""
        return self._start_call(runs_api.list_checkpoints(training_run_id))

    async def list_checkpoints_async(self, training_run_id: str) -> models.CheckpointsListResponse:
        """Await :meth:`list_checkpoints`, and return its result."""
        return await self.list_checkpoints(training_run_id)

    def list_user_checkpoints(self, limit: int = 100, offset: int = 0) -> APIFuture[models.CheckpointsListResponse]:
        """Return one page of the checkpoints of all runs, with a cursor."""
        return self._start_call(runs_api.list_user_checkpoints(**_page(limit, offset)))

    async def list_user_checkpoints_async(self, limit: int = 100, offset: int = 0) -> models.CheckpointsListResponse:
        """Await :meth:`list_user_checkpoints`, and return its result."""
        return await self.list_user_checkpoints(limit, offset)

    def delete_checkpoint(self, training_run_id: str, checkpoint_id: str) -> APIFuture[None]:
        """Delete a checkpoint permanently; ``checkpoint_id`` reads ``weights/NAME`` or ``sampler_weights/NAME``."""
        return self._start_call(runs_api.delete_checkpoint(training_run_id, checkpoint_id))

    async def delete_checkpoint_async(self, training_run_id: str, checkpoint_id: str) -> None:
        """Await :meth:`delete_checkpoint`, and return its result."""
        await self.delete_checkpoint(training_run_id, checkpoint_id)

    def delete_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        """Delete a checkpoint permanently. Raises ValueError for a path without a run."""
        path = parse_checkpoint_address(tinker_path)
        return self.delete_checkpoint(path.training_run_id, path.checkpoint_id)

    async def delete_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        """Await :meth:`delete_checkpoint_from_tinker_path`, and return its result."""
        await self.delete_checkpoint_from_tinker_path(tinker_path)

    def publish_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        """Publish a checkpoint, so that every user can read it. Raises ValueError for a path without a run."""
        path = parse_checkpoint_address(tinker_path)
        return self._start_call(runs_api.publish_checkpoint(path.training_run_id, path.checkpoint_id))

    async def publish_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        """Await :meth:`publish_checkpoint_from_tinker_path`, and return its result."""
        await self.publish_checkpoint_from_tinker_path(tinker_path)

    def unpublish_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        """Unpublish a checkpoint. Raises ValueError for a path without a run."""
        path = parse_checkpoint_address(tinker_path)
        return self._start_call(runs_api.unpublish_checkpoint(path.training_run_id, path.checkpoint_id))

    async def unpublish_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        """Await :meth:`unpublish_checkpoint_from_tinker_path`, and return its result."""
        await self.unpublish_checkpoint_from_tinker_path(tinker_path)

    def set_checkpoint_ttl_from_tinker_path(self, tinker_path: str, ttl_seconds: int | None) -> APIFuture[None]:
        """Let a checkpoint expire in ``ttl_seconds``, or never (None). Raises ValueError for a path without a run."""
        path = parse_checkpoint_address(tinker_path)
        body = models.SetCheckpointTtlRequest(ttl_seconds=ttl_seconds)
        return self._start_call(runs_api.set_checkpoint_ttl(path.training_run_id, path.checkpoint_id, body=body))

    async def set_checkpoint_ttl_from_tinker_path_async(self, tinker_path: str, ttl_seconds: int | None) -> None:
        """Await :meth:`set_checkpoint_ttl_from_tinker_path`, and return its result."""
        await self.set_checkpoint_ttl_from_tinker_path(tinker_path, ttl_seconds)

    def get_checkpoint_archive_url(
        self, training_run_id: str, checkpoint_id: str
    ) -> APIFuture[models.CheckpointArchiveUrlResponse]:
        """Return the URL of the archive of a checkpoint, and its expiry; wire versions before 0.36.0."""
        return self._connection.start(lambda: fetch_archive_url(self._connection, training_run_id, checkpoint_id))

    async def get_checkpoint_archive_url_async(
        self, training_run_id: str, checkpoint_id: str
    ) -> models.CheckpointArchiveUrlResponse:
        """Await :meth:`get_checkpoint_archive_url`, and return its result."""
        return await self.get_checkpoint_archive_url(training_run_id, checkpoint_id)

    def get_checkpoint_archive_url_from_tinker_path(
        self, tinker_path: str
    ) -> APIFuture[models.CheckpointArchiveUrlResponse]:
        """:meth:`get_checkpoint_archive_url` by path. Raises ValueError for a path without a run."""
        path = parse_checkpoint_address(tinker_path)
        return self.get_checkpoint_archive_url(path.training_run_id, path.checkpoint_id)

    async def get_checkpoint_archive_url_from_tinker_path_async(
        self, tinker_path: str
    ) -> models.CheckpointArchiveUrlResponse:
        """Await :meth:`get_checkpoint_archive_url_from_tinker_path`, and return its result."""
        return await self.get_checkpoint_archive_url_from_tinker_path(tinker_path)

    def download_checkpoint_archive(self, training_run_id: str, checkpoint_id: str) -> APIFuture[bytes]:
        """Download the archive of a checkpoint into memory; wire versions before 0.36.0.

        :meth:`get_checkpoint_archive_url` gives the address, to download a large archive to a file.
        """
        return self._connection.start(lambda: download_archive(self._connection, training_run_id, checkpoint_id))

    async def download_checkpoint_archive_async(self, training_run_id: str, checkpoint_id: str) -> bytes:
        """Download an archive as :meth:`download_checkpoint_archive`, and await it."""
        return await self.download_checkpoint_archive(training_run_id, checkpoint_id)

    def download_checkpoint_archive_from_tinker_path(self, tinker_path: str) -> APIFuture[bytes]:
        """Download the archive of the checkpoint at a path into memory. Raises ValueError for a path without a run."""
        path = parse_checkpoint_address(tinker_path)
        return self.download_checkpoint_archive(path.training_run_id, path.checkpoint_id)

    async def download_checkpoint_archive_from_tinker_path_async(self, tinker_path: str) -> bytes:
        """Download as :meth:`download_checkpoint_archive_from_tinker_path`, and await it."""
        return await self.download_checkpoint_archive_from_tinker_path(tinker_path)

    def get_external_weights_urls(self, tinker_path: str) -> APIFuture[models.ExternalWeightsUrlsResponse]:
        """Return the URLs of the files of weights from save_weights_external; wire 0.28.1 and later.

        Raises:
            ValueError: the path does not name a run and a checkpoint, or holds other weights; nothing was sent.
        """
        path = parse_checkpoint_address(tinker_path)
        kind = parse_checkpoint_kind(tinker_path)
        if kind not in (None, "external"):
            raise ValueError(
                f"{tinker_path!r} must be external weights, got {kind} weights; save them with save_weights_external"
            )
        return self._start_call(runs_api.get_external_weights_urls(path.training_run_id, path.checkpoint_id))

    async def get_external_weights_urls_async(self, tinker_path: str) -> models.ExternalWeightsUrlsResponse:
        """Await :meth:`get_external_weights_urls`, and return its result."""
        return await self.get_external_weights_urls(tinker_path)

    def copy_weights(
        self,
        path: str,
        destination_project_id: str | None = None,
        *,
        ttl_seconds: int | None = None,
        weights_access_token: str | None = None,
    ) -> APIFuture[str]:
        """Copy saved weights of another user into a project, and return the path of the copy; wire 0.34.0 and later.

        Args:
            path: path of the weights.
            destination_project_id: the project; default TINKER_PROJECT_ID.
            ttl_seconds: lifetime of the copy in seconds; None keeps it permanently.
            weights_access_token: token from the owner; None for public weights.

        Raises:
            ValueError: the path is empty, or no project is set; nothing was sent.
        """
        validate_path(path)
        validate_access_token(weights_access_token)
        require_optional_text("destination_project_id", destination_project_id)
        project_id = destination_project_id or os.environ.get("TINKER_PROJECT_ID")
        if not project_id:
            raise ValueError("destination_project_id: give the id of a project, or set TINKER_PROJECT_ID")
        return self._connection.start(
            lambda: copy_weights_to_project(self._connection, path, project_id, ttl_seconds, weights_access_token)
        )

    async def copy_weights_async(
        self,
        path: str,
        destination_project_id: str | None = None,
        *,
        ttl_seconds: int | None = None,
        weights_access_token: str | None = None,
    ) -> str:
        """Await :meth:`copy_weights`, and return its result."""
        return await self.copy_weights(
            path, destination_project_id, ttl_seconds=ttl_seconds, weights_access_token=weights_access_token
        )

    def get_session(self, session_id: str, access_scope: Scope = "owned") -> APIFuture[models.GetSessionResponse]:
        """Return the training runs and samplers of a session."""
        return self._start_call(get_session(session_id, access_scope=_scope(access_scope)))

    async def get_session_async(self, session_id: str, access_scope: Scope = "owned") -> models.GetSessionResponse:
        """Await :meth:`get_session`, and return its result."""
        return await self.get_session(session_id, access_scope)

    def list_sessions(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned"
    ) -> APIFuture[models.ListSessionsResponse]:
        """Return one page of session ids."""
        return self._start_call(list_sessions(**_page(limit, offset), access_scope=_scope(access_scope)))

    async def list_sessions_async(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned"
    ) -> models.ListSessionsResponse:
        """Await :meth:`list_sessions`, and return its result."""
        return await self.list_sessions(limit, offset, access_scope)

    def get_sampler(self, sampler_id: str) -> APIFuture[models.GetSamplerResponse]:
        """Return the weights of a sampling session."""
        return self._start_call(get_sampler(sampler_id))

    async def get_sampler_async(self, sampler_id: str) -> models.GetSamplerResponse:
        """Await :meth:`get_sampler`, and return its result."""
        return await self.get_sampler(sampler_id)

    def search_sessions(self, request: models.SessionSearchRequest) -> APIFuture[models.SessionSearchResponse]:
        """Return one page of the sessions that match, with the cursor of the next page; wire 0.36.0 and later."""
        if not isinstance(request, models.SessionSearchRequest):
            raise TypeError(f"request: expected a SessionSearchRequest, got {type(request).__name__}")
        return self._start_call(search_sessions(body=request))

    async def search_sessions_async(self, request: models.SessionSearchRequest) -> models.SessionSearchResponse:
        """Await :meth:`search_sessions`, and return its result."""
        return await self.search_sessions(request)

    def assign_session_project(self, session_id: str, project_id: str) -> APIFuture[None]:
        """Move a session to a project; wire 0.22.7 and later."""
        return self._start_call(
            assign_session_project(session_id, body=models.AssignSessionProjectRequest(project_id=project_id))
        )

    async def assign_session_project_async(self, session_id: str, project_id: str) -> None:
        """Await :meth:`assign_session_project`, and return its result."""
        await self.assign_session_project(session_id, project_id)

    def export_session_trace(self, session_id: str) -> APIFuture[str]:
        """Return the signed URL of a session's trace, once the server has exported it; wire 0.24.1 and later.

        Raises:
            TinkerError: raised by the future; the export failed.
        """
        return self._connection.start(lambda: export_trace(self._connection, session_id))

    async def export_session_trace_async(self, session_id: str) -> str:
        """Await :meth:`export_session_trace`, and return its result."""
        return await self.export_session_trace(session_id)


def _page(limit: int, offset: int) -> dict[str, int]:
    """Validate and return the query of one page."""
    require_int("limit", limit)
    require_int("offset", offset)
    return {"limit": limit, "offset": offset}


def _scope(scope: Scope) -> Scope | UnsetType:
    validator_of(Scope)("access_scope", scope)
    # The default equals the behaviour of servers without scopes, and is not sent to them.
    return UNSET if scope == "owned" else scope
