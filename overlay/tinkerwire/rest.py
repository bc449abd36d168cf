"""Training runs, checkpoints and sessions: what is there, and what is to become of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Literal, TypeVar

from tinkerwire_base.call import Call, WireResponse, response_info
from tinkerwire_base.errors import APIResponseValidationError
from tinkerwire_base.unset import UNSET, UnsetType
from tinkerwire_generated.api import runs as runs_api
from tinkerwire_generated.api.sampling import get_sampler
from tinkerwire_generated.api.service import get_server_capabilities
from tinkerwire_generated.api.session import get_session, list_sessions
from tinkerwire_generated.api.weights import weights_info
from tinkerwire_generated.models import (
    CheckpointArchiveUrlResponse,
    CheckpointsListResponse,
    GetSamplerResponse,
    GetServerCapabilitiesResponse,
    GetSessionResponse,
    ListSessionsResponse,
    ParsedCheckpointTinkerPath,
    SetCheckpointTtlRequest,
    TrainingRun,
    TrainingRunsResponse,
    WeightsInfoRequest,
    WeightsInfoResponse,
)

from .backpressure import Traffic
from .connection import Connection, Submission
from .futures import APIFuture

T = TypeVar("T")
Scope = Literal["owned", "accessible"]
ARCHIVE_LIFE = timedelta(minutes=15)
"""How long an archive address lasts when the server does not say."""


class RestClient:
    """Training runs, checkpoints and sessions of a server. Made by ServiceClient.create_rest_client."""

    def __init__(self, _connection: Connection) -> None:
        self._connection = _connection

    def get_server_capabilities(self) -> APIFuture[GetServerCapabilitiesResponse]:
        """The models that the server supports."""
        return self._ask(get_server_capabilities())

    async def get_server_capabilities_async(self) -> GetServerCapabilitiesResponse:
        """:meth:`get_server_capabilities`, awaited."""
        return await self.get_server_capabilities()

    def get_training_run(self, training_run_id: str, access_scope: Scope = "owned") -> APIFuture[TrainingRun]:
        """One training run; its id is the model's id."""
        return self._ask(runs_api.get_training_run(training_run_id, access_scope=_scope(access_scope)))

    async def get_training_run_async(self, training_run_id: str, access_scope: Scope = "owned") -> TrainingRun:
        """:meth:`get_training_run`, awaited."""
        return await self.get_training_run(training_run_id, access_scope)

    def get_training_run_by_tinker_path(
        self, tinker_path: str, access_scope: Scope = "owned"
    ) -> APIFuture[TrainingRun]:
        """The training run that a checkpoint comes from. Raises ValueError for a path that is none."""
        return self.get_training_run(_parsed(tinker_path).training_run_id, access_scope)

    async def get_training_run_by_tinker_path_async(
        self, tinker_path: str, access_scope: Scope = "owned"
    ) -> TrainingRun:
        """:meth:`get_training_run_by_tinker_path`, awaited."""
        return await self.get_training_run_by_tinker_path(tinker_path, access_scope)

    def get_weights_info_by_tinker_path(self, tinker_path: str) -> APIFuture[WeightsInfoResponse]:
        """Of which base model and adapter the weights at a path are."""
        return self._ask(weights_info(body=WeightsInfoRequest(tinker_path=tinker_path)))

    async def get_weights_info_by_tinker_path_async(self, tinker_path: str) -> WeightsInfoResponse:
        """:meth:`get_weights_info_by_tinker_path`, awaited."""
        return await self.get_weights_info_by_tinker_path(tinker_path)

    def list_training_runs(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned"
    ) -> APIFuture[TrainingRunsResponse]:
        """One page of training runs, the latest first, with a cursor."""
        return self._ask(runs_api.list_training_runs(limit=limit, offset=offset, access_scope=_scope(access_scope)))

    async def list_training_runs_async(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned"
    ) -> TrainingRunsResponse:
        """:meth:`list_training_runs`, awaited."""
        return await self.list_training_runs(limit, offset, access_scope)

    def list_checkpoints(self, training_run_id: str) -> APIFuture[CheckpointsListResponse]:
        """All checkpoints of one training run."""
        return self._ask(runs_api.list_checkpoints(training_run_id))

    async def list_checkpoints_async(self, training_run_id: str) -> CheckpointsListResponse:
        """:meth:`list_checkpoints`, awaited."""
        return await self.list_checkpoints(training_run_id)

    def list_user_checkpoints(self, limit: int = 100, offset: int = 0) -> APIFuture[CheckpointsListResponse]:
        """One page of the checkpoints of all runs, with a cursor."""
        return self._ask(runs_api.list_user_checkpoints(limit=limit, offset=offset))

    async def list_user_checkpoints_async(self, limit: int = 100, offset: int = 0) -> CheckpointsListResponse:
        """:meth:`list_user_checkpoints`, awaited."""
        return await self.list_user_checkpoints(limit, offset)

    def delete_checkpoint(self, training_run_id: str, checkpoint_id: str) -> APIFuture[None]:
        """Delete a checkpoint, for good; ``checkpoint_id`` reads ``weights/NAME`` or ``sampler_weights/NAME``."""
        return self._ask(runs_api.delete_checkpoint(training_run_id, checkpoint_id))

    async def delete_checkpoint_async(self, training_run_id: str, checkpoint_id: str) -> None:
        """:meth:`delete_checkpoint`, awaited."""
        await self.delete_checkpoint(training_run_id, checkpoint_id)

    def delete_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        """Delete a checkpoint, for good. Raises ValueError for a path that is none."""
        path = _parsed(tinker_path)
        return self.delete_checkpoint(path.training_run_id, path.checkpoint_id)

    async def delete_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        """:meth:`delete_checkpoint_from_tinker_path`, awaited."""
        await self.delete_checkpoint_from_tinker_path(tinker_path)

    def publish_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        """Let everybody read a checkpoint. Raises ValueError for a path that is none."""
        path = _parsed(tinker_path)
        return self._ask(runs_api.publish_checkpoint(path.training_run_id, path.checkpoint_id))

    async def publish_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        """:meth:`publish_checkpoint_from_tinker_path`, awaited."""
        await self.publish_checkpoint_from_tinker_path(tinker_path)

    def unpublish_checkpoint_from_tinker_path(self, tinker_path: str) -> APIFuture[None]:
        """Take a published checkpoint back. Raises ValueError for a path that is none."""
        path = _parsed(tinker_path)
        return self._ask(runs_api.unpublish_checkpoint(path.training_run_id, path.checkpoint_id))

    async def unpublish_checkpoint_from_tinker_path_async(self, tinker_path: str) -> None:
        """:meth:`unpublish_checkpoint_from_tinker_path`, awaited."""
        await self.unpublish_checkpoint_from_tinker_path(tinker_path)

    def set_checkpoint_ttl_from_tinker_path(self, tinker_path: str, ttl_seconds: int | None) -> APIFuture[None]:
        """Let a checkpoint expire in ``ttl_seconds``, or never (None). Raises ValueError for a path that is none."""
        path = _parsed(tinker_path)
        body = SetCheckpointTtlRequest(ttl_seconds=ttl_seconds)
        return self._ask(runs_api.set_checkpoint_ttl(path.training_run_id, path.checkpoint_id, body=body))

    async def set_checkpoint_ttl_from_tinker_path_async(self, tinker_path: str, ttl_seconds: int | None) -> None:
        """:meth:`set_checkpoint_ttl_from_tinker_path`, awaited."""
        await self.set_checkpoint_ttl_from_tinker_path(tinker_path, ttl_seconds)

    def get_checkpoint_archive_url(
        self, training_run_id: str, checkpoint_id: str
    ) -> APIFuture[CheckpointArchiveUrlResponse]:
        """Where a checkpoint can be fetched as one archive, and until when."""
        return self._connection.start(self._archive_url(training_run_id, checkpoint_id))

    async def get_checkpoint_archive_url_async(
        self, training_run_id: str, checkpoint_id: str
    ) -> CheckpointArchiveUrlResponse:
        """:meth:`get_checkpoint_archive_url`, awaited."""
        return await self.get_checkpoint_archive_url(training_run_id, checkpoint_id)

    def get_checkpoint_archive_url_from_tinker_path(self, tinker_path: str) -> APIFuture[CheckpointArchiveUrlResponse]:
        """:meth:`get_checkpoint_archive_url` by path. Raises ValueError for a path that is none."""
        path = _parsed(tinker_path)
        return self.get_checkpoint_archive_url(path.training_run_id, path.checkpoint_id)

    async def get_checkpoint_archive_url_from_tinker_path_async(self, tinker_path: str) -> CheckpointArchiveUrlResponse:
        """:meth:`get_checkpoint_archive_url_from_tinker_path`, awaited."""
        return await self.get_checkpoint_archive_url_from_tinker_path(tinker_path)

    def get_session(self, session_id: str, access_scope: Scope = "owned") -> APIFuture[GetSessionResponse]:
        """The training runs and samplers of a session."""
        return self._ask(get_session(session_id, access_scope=_scope(access_scope)))

    async def get_session_async(self, session_id: str, access_scope: Scope = "owned") -> GetSessionResponse:
        """:meth:`get_session`, awaited."""
        return await self.get_session(session_id, access_scope)

    def list_sessions(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned"
    ) -> APIFuture[ListSessionsResponse]:
        """One page of session ids."""
        return self._ask(list_sessions(limit=limit, offset=offset, access_scope=_scope(access_scope)))

    async def list_sessions_async(
        self, limit: int = 20, offset: int = 0, access_scope: Scope = "owned"
    ) -> ListSessionsResponse:
        """:meth:`list_sessions`, awaited."""
        return await self.list_sessions(limit, offset, access_scope)

    def get_sampler(self, sampler_id: str) -> APIFuture[GetSamplerResponse]:
        """The weights behind a sampling session."""
        return self._ask(get_sampler(sampler_id))

    async def get_sampler_async(self, sampler_id: str) -> GetSamplerResponse:
        """:meth:`get_sampler`, awaited."""
        return await self.get_sampler(sampler_id)

    def _ask(self, call: Call[T]) -> APIFuture[T]:
        return self._connection.start(self._connection.call(call, Traffic.REST))

    async def _archive_url(self, training_run_id: str, checkpoint_id: str) -> CheckpointArchiveUrlResponse:
        call = runs_api.get_checkpoint_archive_url(training_run_id, checkpoint_id)
        request = self._connection.encode(call, Submission(), await self._connection.dialect())
        in_body = self._connection.reader(call, request)

        def read(answer: WireResponse) -> CheckpointArchiveUrlResponse:
            return (None if answer.status == 302 else in_body(answer)) or _moved_to(answer)

        return await self._connection.send(request, read, Traffic.REST)


def _moved_to(answer: WireResponse) -> CheckpointArchiveUrlResponse:
    location = answer.headers.get("location")
    if not location:
        raise APIResponseValidationError(
            f"get_checkpoint_archive_url: HTTP {answer.status} names no Location", response=response_info(answer)
        )
    return CheckpointArchiveUrlResponse(url=location, expires=_expires(answer.headers.get("expires")))


def _expires(text: str | None) -> datetime:
    try:
        found = parsedate_to_datetime(text or "")
    except ValueError:
        return datetime.now(timezone.utc) + ARCHIVE_LIFE
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _parsed(tinker_path: str) -> ParsedCheckpointTinkerPath:
    return ParsedCheckpointTinkerPath.from_tinker_path(tinker_path)


def _scope(scope: Scope) -> Scope | UnsetType:
    # The default is what servers do that have never heard of scopes.
    return UNSET if scope == "owned" else scope
