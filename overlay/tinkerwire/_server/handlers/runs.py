"""Training runs and their checkpoints."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import formatdate

from tinkerwire._server.handlers.pagination import paginate
from tinkerwire._server.handlers.user_metadata import stringify_values
from tinkerwire._server.handlers.weights import validate_ttl
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import NO_CONTENT, HttpError, Response
from tinkerwire._server.sessions.tokens import OWNER
from tinkerwire._server.state import State
from tinkerwire._server.storage.checkpoint_paths import EXTERNAL_WEIGHTS, KINDS, SAMPLER_WEIGHTS, WEIGHTS, CheckpointKey
from tinkerwire._server.storage.runs import Run
from tinkerwire_generated.models import (
    CheckpointsListResponse,
    ExternalWeightsUrlsResponse,
    SetCheckpointTtlRequest,
    TrainingRun,
    TrainingRunsResponse,
)


def list_training_runs(state: State, request: Request) -> Response:
    """List training runs, newest first."""
    runs, cursor = paginate(request, state.runs.newest_first())
    body = TrainingRunsResponse(training_runs=[_to_wire(state, run) for run in runs], cursor=cursor)
    return Response(body=body)


def get_training_run(state: State, request: Request) -> Response:
    """Describe a training run."""
    return Response(body=_to_wire(state, state.runs.get(request.path["training_run_id"])))


def _to_wire(state: State, run: Run) -> TrainingRun:
    checkpoints = state.checkpoints.newest_first(run.run_id)
    newest = {record.key.kind: record.to_wire() for record in reversed(checkpoints)}
    return TrainingRun(
        training_run_id=run.run_id,
        base_model=run.base_model,
        model_owner=OWNER,
        is_lora=True,
        lora_rank=run.rank,
        last_request_time=datetime.fromtimestamp(run.last_request_at, timezone.utc),
        last_checkpoint=newest.get(WEIGHTS),
        last_sampler_checkpoint=newest.get(SAMPLER_WEIGHTS),
        user_metadata=stringify_values(run.user_metadata),
    )


def list_checkpoints(state: State, request: Request) -> Response:
    """List the checkpoints of a training run, newest first."""
    return _list_checkpoints(state, request.path["training_run_id"])


def list_model_checkpoints(state: State, request: Request) -> Response:
    """List the checkpoints of a model, at the path that the oldest clients use."""
    return _list_checkpoints(state, request.path["model_id"])


def _list_checkpoints(state: State, run_id: str) -> Response:
    run = state.runs.get(run_id)
    checkpoints = [record.to_wire() for record in state.checkpoints.newest_first(run.run_id)]
    return Response(body=CheckpointsListResponse(checkpoints=checkpoints))


def list_user_checkpoints(state: State, request: Request) -> Response:
    """List the checkpoints of all runs, newest first."""
    records, cursor = paginate(request, state.checkpoints.newest_first())
    body = CheckpointsListResponse(checkpoints=[record.to_wire() for record in records], cursor=cursor)
    return Response(body=body)


def delete_checkpoint(state: State, request: Request) -> Response:
    """Delete a checkpoint."""
    state.checkpoints.delete(_read_key(state, request))
    return NO_CONTENT


def publish_checkpoint(state: State, request: Request) -> Response:
    """Mark a checkpoint as public."""
    state.checkpoints.set_public(_read_key(state, request), True)
    return NO_CONTENT


def unpublish_checkpoint(state: State, request: Request) -> Response:
    """Mark a checkpoint as private."""
    state.checkpoints.set_public(_read_key(state, request), False)
    return NO_CONTENT


def set_checkpoint_ttl(state: State, request: Request) -> Response:
    """Set or remove the time to live of a checkpoint."""
    body: SetCheckpointTtlRequest = request.body
    state.checkpoints.set_ttl(_read_key(state, request), validate_ttl(body.ttl_seconds))
    return NO_CONTENT


def get_checkpoint_archive_url(state: State, request: Request) -> Response:
    """Redirect to a tar of a checkpoint at this server or, in process, to the file with its arrays."""
    key = _read_key(state, request)
    state.checkpoints.get(key)
    url, expires_at = _create_url(state, request, key, is_tar=True)
    return Response(status=302, headers={"location": url, "expires": formatdate(expires_at, usegmt=True)})


def get_external_weights_urls(state: State, request: Request) -> Response:
    """Return the URL of a checkpoint that was saved for download."""
    key = _read_key(state, request)
    state.checkpoints.get(key)
    if key.kind != EXTERNAL_WEIGHTS:
        raise HttpError(404, f"{key.tinker_path} was not saved for download; use save_weights_external")
    url, expires_at = _create_url(state, request, key, is_tar=False)
    expires = datetime.fromtimestamp(expires_at, timezone.utc)
    return Response(body=ExternalWeightsUrlsResponse(urls={f"{key.name}.npz": url}, expires=expires))


def _create_url(state: State, request: Request, key: CheckpointKey, *, is_tar: bool) -> tuple[str, float]:
    """Return a URL for the arrays of a checkpoint, and its expiry in seconds since the epoch."""
    file = state.checkpoints.arrays_path(key)
    path, expires_at = state.archives.create_path(file, is_tar=is_tar)
    host = request.headers.get("host")
    return f"http://{host}{path}" if host else file.as_uri(), expires_at


def _read_key(state: State, request: Request) -> CheckpointKey:
    run = state.runs.get(request.path["training_run_id"])
    kind, _, name = request.path["checkpoint_id"].partition("/")
    if kind not in KINDS or not name:
        expected = " or ".join(f"{kind}/NAME" for kind in KINDS)
        raise HttpError(404, f"checkpoint id must have the form {expected}, got {request.path['checkpoint_id']!r}")
    return CheckpointKey(run.run_id, kind, name)
