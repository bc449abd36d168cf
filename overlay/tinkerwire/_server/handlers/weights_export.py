"""Export of weights: saved for download, or copied into a new run."""

from __future__ import annotations

import uuid

from tinkerwire._server.engine import EngineError
from tinkerwire._server.handlers.submission import enqueue, find_accepted, queue_response
from tinkerwire._server.handlers.weights import validate_ttl
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response, conflict_error, field_error
from tinkerwire._server.state import State
from tinkerwire._server.storage.checkpoint_paths import EXTERNAL_WEIGHTS, read_path, validate_name
from tinkerwire._server.storage.checkpoints import CheckpointOptions
from tinkerwire_generated.models import (
    CopyWeightsRequest,
    CopyWeightsResponse,
    SaveWeightsExternalRequest,
    SaveWeightsExternalResponseInternal,
)


def save_weights_external(state: State, request: Request) -> Response:
    """Save the adapter as a file for download."""
    body: SaveWeightsExternalRequest = request.body
    model = state.models.get(body.model_id)
    accepted_id = find_accepted(model, request)
    if accepted_id is not None:
        return queue_response(accepted_id)
    if body.age_encryption_recipients:
        raise field_error("age_encryption_recipients", "this server does not support encryption; omit it")
    name, options = validate_name("path", body.path), CheckpointOptions(ttl_s=validate_ttl(body.ttl_seconds))

    def work() -> SaveWeightsExternalResponseInternal:
        arrays = dict(model.engine.adapter_snapshot().params)
        key = state.checkpoints.save(model.run, EXTERNAL_WEIGHTS, name, arrays, options)
        size_bytes = state.checkpoints.get(key).size_bytes
        return SaveWeightsExternalResponseInternal(
            path=key.tinker_path, size_bytes=size_bytes, type="save_weights_external"
        )

    return enqueue(state, request, model, work)


def copy_weights(state: State, request: Request) -> Response:
    """Copy a checkpoint into a new run; all checkpoints belong to one user, so the owner is not checked."""
    body: CopyWeightsRequest = request.body
    source = read_path("source_path", body.source_path)
    options = CheckpointOptions(
        ttl_s=validate_ttl(body.ttl_seconds), user_metadata=state.checkpoints.get(source).user_metadata
    )
    run_id = f"copy-{uuid.uuid4().hex}"
    if body.session_id is not None:
        # The id differs from those of the session's models, which create_model numbers.
        run_id = f"{state.sessions.require_active(body.session_id).session_id}:copy:{body.model_seq_id}"
        if state.runs.find(run_id) is not None:
            raise conflict_error(f"another copy used model_seq_id {body.model_seq_id}; use the next free one")
    try:
        arrays = state.checkpoints.read_arrays(source)
        source_run = state.runs.get(source.run_id)
        run = state.runs.add(run_id, source_run.base_model, source_run.settings, source_run.user_metadata)
        key = state.checkpoints.save(run, source.kind, source.name, arrays, options)
    except EngineError as error:
        raise field_error("source_path", str(error)) from None
    return Response(body=CopyWeightsResponse(tinker_path=key.tinker_path))
