"""Training runs and their checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import formatdate

from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.handlers.pagination import page
from tinkerwire._server.handlers.user_metadata import texts
from tinkerwire._server.handlers.weights import checked_ttl
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import DONE, HttpError, Response
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
    found, cursor = page(request, state.runs.newest_first())
    runs = [_described(state, run) for run in found]
    return Response(body=TrainingRunsResponse(training_runs=runs, cursor=cursor))


def get_training_run(state: State, request: Request) -> Response:
    """Describe a training run."""
    return Response(body=_described(state, state.runs.get(request.path["training_run_id"])))


def _described(state: State, run: Run) -> TrainingRun:
    checkpoints = state.checkpoints.newest_first(run.run_id)
    newest = {saved.key.kind: saved.to_wire() for saved in reversed(checkpoints)}
    return TrainingRun(
        training_run_id=run.run_id,
        base_model=run.base_model,
        model_owner=OWNER,
        is_lora=True,
        lora_rank=run.rank,
        last_request_time=datetime.fromtimestamp(run.last_request_at, timezone.utc),
        last_checkpoint=newest.get(WEIGHTS),
        last_sampler_checkpoint=newest.get(SAMPLER_WEIGHTS),
        user_metadata=texts(run.user_metadata),
    )


def list_checkpoints(state: State, request: Request) -> Response:
    """List the checkpoints of a training run, newest first."""
    return _checkpoints_of(state, request.path["training_run_id"])


def list_model_checkpoints(state: State, request: Request) -> Response:
    """List the checkpoints of a model, under the address that the oldest clients use."""
    return _checkpoints_of(state, request.path["model_id"])


def _checkpoints_of(state: State, run_id: str) -> Response:
    run = state.runs.get(run_id)
    found = [saved.to_wire() for saved in state.checkpoints.newest_first(run.run_id)]
    return Response(body=CheckpointsListResponse(checkpoints=found))


def list_user_checkpoints(state: State, request: Request) -> Response:
    """List the checkpoints of all runs, newest first."""
    found, cursor = page(request, state.checkpoints.newest_first())
    return Response(body=CheckpointsListResponse(checkpoints=[saved.to_wire() for saved in found], cursor=cursor))


def delete_checkpoint(state: State, request: Request) -> Response:
    """Delete a checkpoint."""
    state.checkpoints.delete(_key(state, request))
    return DONE


def publish_checkpoint(state: State, request: Request) -> Response:
    """Mark a checkpoint as public."""
    state.checkpoints.set_public(_key(state, request), True)
    return DONE


def unpublish_checkpoint(state: State, request: Request) -> Response:
    """Mark a checkpoint as private."""
    state.checkpoints.set_public(_key(state, request), False)
    return DONE


def set_checkpoint_ttl(state: State, request: Request) -> Response:
    """Set or lift the time after which a checkpoint is deleted."""
    body: SetCheckpointTtlRequest = request.body
    state.checkpoints.set_ttl(_key(state, request), checked_ttl(body.ttl_seconds))
    return DONE


def get_checkpoint_archive_url(state: State, request: Request) -> Response:
    """Redirect to the arrays of a checkpoint: at this server, or, in process, to the file itself."""
    key = _key(state, request)
    state.checkpoints.get(key)
    address, expires_at = _address(state, request, key)
    return Response(status=302, headers={"location": address, "expires": formatdate(expires_at, usegmt=True)})


def get_external_weights_urls(state: State, request: Request) -> Response:
    """Say where the file of a checkpoint lies that was saved to download."""
    key = _key(state, request)
    state.checkpoints.get(key)
    if key.kind != EXTERNAL_WEIGHTS:
        raise HttpError(404, f"{key.tinker_path} was not saved to download; save_weights_external does that")
    address, expires_at = _address(state, request, key)
    expires = datetime.fromtimestamp(expires_at, timezone.utc)
    return Response(body=ExternalWeightsUrlsResponse(urls={f"{key.name}.npz": address}, expires=expires))


def _address(state: State, request: Request, key: CheckpointKey) -> tuple[str, float]:
    """Where the arrays of a checkpoint can be had, and until when, in seconds since the epoch."""
    file = state.checkpoints.path_of(key)
    path, expires_at = state.archives.offer(file)
    host = request.headers.get("host")
    return f"http://{host}{path}" if host else file.as_uri(), expires_at


def _key(state: State, request: Request) -> CheckpointKey:
    run = state.runs.get(request.path["training_run_id"])
    kind, _, name = request.path["checkpoint_id"].partition("/")
    if kind not in KINDS or not name:
        wanted = " or ".join(f"{each}/NAME" for each in KINDS)
        raise HttpError(404, f"{request.path['checkpoint_id']!r} is no checkpoint id; it should read {wanted}")
    return CheckpointKey(run.run_id, kind, name)


HANDLERS: Mapping[str, Handler] = {
    "list_training_runs": list_training_runs,
    "get_training_run": get_training_run,
    "list_checkpoints": list_checkpoints,
    "list_model_checkpoints": list_model_checkpoints,
    "list_user_checkpoints": list_user_checkpoints,
    "delete_checkpoint": delete_checkpoint,
    "publish_checkpoint": publish_checkpoint,
    "unpublish_checkpoint": unpublish_checkpoint,
    "set_checkpoint_ttl": set_checkpoint_ttl,
    "get_checkpoint_archive_url": get_checkpoint_archive_url,
    "get_external_weights_urls": get_external_weights_urls,
}
