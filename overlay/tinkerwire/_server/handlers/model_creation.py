"""Creation of models, new or from saved weights, once for each model_seq_id of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from tinkerwire._server.engine import LoraSettings
from tinkerwire._server.handlers.submission import queue_response
from tinkerwire._server.handlers.user_metadata import check_depth
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response, field_error
from tinkerwire._server.ordering.seq_ids import Deduplicator
from tinkerwire._server.sessions.models import Effect, TrainedModel
from tinkerwire._server.state import State
from tinkerwire_generated.models import AdamOptimizerConfig, OptimizerConfig


@attrs.frozen
class ModelPlan:
    """The properties of a new model."""

    base_model: str
    settings: LoraSettings
    user_metadata: dict[str, Any] | None


def enqueue_creation(
    state: State,
    request: Request,
    session_id: str,
    model_seq_id: int,
    make_plan: Callable[[], ModelPlan],
    build: Callable[[TrainedModel], Any],
) -> Response:
    """Queue the creation of a model, or return the future of the model with the same model_seq_id.

    Args:
        state: state of the server.
        request: the request.
        session_id: session of the model.
        model_seq_id: number of the model in its session.
        make_plan: plans the model if it is new; may raise HttpError.
        build: builds the model, as the first job of its worker; its return value is the result.
    """
    session = state.sessions.require_active(session_id)
    if model_seq_id < 0:
        raise field_error("model_seq_id", f"must be at least 0, got {model_seq_id}")
    model_id = f"{session.session_id}:train:{model_seq_id}"
    accepted_id = session.model_requests.find(model_seq_id, request.key, request.fingerprint)
    if accepted_id is not None:
        return queue_response(accepted_id, model_id)
    if state.models.is_known(model_id):
        raise session.model_requests.create_conflict(model_seq_id)
    plan = make_plan()
    check_depth(plan.user_metadata)
    config = state.settings.catalogue.get(plan.base_model)
    run = state.runs.add(model_id, plan.base_model, plan.settings, plan.user_metadata)
    model = TrainedModel(
        run,
        config,
        session.session_id,
        Deduplicator("seq_id", model_id, state.requests),
        state.journal,
        strict_sequence=state.settings.strict_sequence,
        gap_wait_s=state.settings.gap_wait_s,
    )
    state.models.add(model)
    session.model_ids.append(model_id)
    request_id = state.enqueue_training(model, lambda: build(model), effect=Effect.RECORDED)
    session.model_requests.accept(model_seq_id, request.key, request.fingerprint, request_id)
    return queue_response(request_id, model_id)


def check_optimizer(config: OptimizerConfig | None) -> None:
    """Reject optimizers that this engine does not have.

    Raises:
        HttpError: 422 for another optimizer than AdamW.
    """
    if config is not None and config.type != AdamOptimizerConfig().type:
        raise field_error("optimizer_config", f"this server only supports AdamW, got {config.type!r}")
