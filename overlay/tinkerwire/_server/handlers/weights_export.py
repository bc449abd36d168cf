"""Weights that leave their run: saved to download, or copied into a run of their own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from tinkerwire._server.engine import EngineError
from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.handlers.submission import enqueue, queued, resend
from tinkerwire._server.handlers.weights import checked_ttl
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response, conflict, invalid
from tinkerwire._server.state import State
from tinkerwire._server.storage.checkpoint_paths import EXTERNAL_WEIGHTS, checked_name, read_path
from tinkerwire._server.storage.checkpoints import CheckpointOptions
from tinkerwire_generated.models import (
    CopyWeightsRequest,
    CopyWeightsResponse,
    SaveWeightsExternalRequest,
    SaveWeightsExternalResponseInternal,
)


def save_weights_external(state: State, request: Request) -> Response:
    """Save the adapter as a file to download."""
    body: SaveWeightsExternalRequest = request.body
    model = state.models.get(body.model_id)
    earlier = resend(model, request)
    if earlier is not None:
        return queued(earlier)
    if body.age_encryption_recipients:
        raise invalid("age_encryption_recipients", "this server does not encrypt; leave it out")
    name, about = checked_name("path", body.path), CheckpointOptions(ttl_s=checked_ttl(body.ttl_seconds))

    def work() -> SaveWeightsExternalResponseInternal:
        arrays = dict(model.engine.adapter_snapshot().params)
        key = state.checkpoints.save(model.run, EXTERNAL_WEIGHTS, name, arrays, about)
        size_bytes = state.checkpoints.get(key).size_bytes
        return SaveWeightsExternalResponseInternal(
            path=key.tinker_path, size_bytes=size_bytes, type="save_weights_external"
        )

    return enqueue(state, request, model, work)


def copy_weights(state: State, request: Request) -> Response:
    """Copy a checkpoint into a new run; who owns it is not asked, for all is one user's here."""
    body: CopyWeightsRequest = request.body
    source = read_path("source_path", body.source_path)
    about = CheckpointOptions(
        ttl_s=checked_ttl(body.ttl_seconds), user_metadata=state.checkpoints.get(source).user_metadata
    )
    run_id = f"copy-{uuid.uuid4().hex}"
    if body.session_id is not None:
        # Beside the session's models, whose numbers belong to create_model.
        run_id = f"{state.sessions.alive(body.session_id).session_id}:copy:{body.model_seq_id}"
        if state.runs.find(run_id) is not None:
            raise conflict(f"model_seq_id {body.model_seq_id} was used by another copy; take the next free one")
    try:
        arrays = state.checkpoints.arrays(source)
        saved = state.runs.get(source.run_id)
        run = state.runs.add(run_id, saved.base_model, saved.settings, saved.user_metadata)
        key = state.checkpoints.save(run, source.kind, source.name, arrays, about)
    except EngineError as error:
        raise invalid("source_path", str(error)) from None
    return Response(body=CopyWeightsResponse(tinker_path=key.tinker_path))


HANDLERS: Mapping[str, Handler] = {
    "save_weights_external": save_weights_external,
    "copy_weights": copy_weights,
}
