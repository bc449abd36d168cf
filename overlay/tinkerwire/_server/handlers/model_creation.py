"""How models come to be, from nothing or from saved weights, once for each model_seq_id of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from tinkerwire._server.engine import LoraSettings
from tinkerwire._server.handlers.submission import queued
from tinkerwire._server.handlers.user_metadata import check_depth
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response, invalid
from tinkerwire._server.ordering.seq_ids import Deduplicator
from tinkerwire._server.sessions.models import TrainedModel
from tinkerwire._server.state import State
from tinkerwire_generated.models import AdamOptimizerConfig, OptimizerConfig


@attrs.frozen
class Plan:
    """What a new model is to be."""

    base_model: str
    settings: LoraSettings
    user_metadata: dict[str, Any] | None


def new_model(
    state: State,
    request: Request,
    session_id: str,
    model_seq_id: int,
    planned: Callable[[], Plan],
    build: Callable[[TrainedModel], Any],
) -> Response:
    """Queue the building of a model, or give the promise of the one that has this model_seq_id.

    Args:
        planned: says what it is to be; asked only for a new one, and may refuse.
        build: makes it, as the first job of its worker; what it returns is the result.
    """
    session = state.sessions.alive(session_id)
    if model_seq_id < 0:
        raise invalid("model_seq_id", f"expected 0 or more, got {model_seq_id}")
    model_id = f"{session.session_id}:train:{model_seq_id}"
    earlier = session.models.find(model_seq_id, request.key, request.fingerprint)
    if earlier is not None:
        return queued(earlier, model_id)
    if state.models.is_known(model_id):
        raise session.models.conflict(model_seq_id)
    plan = planned()
    check_depth(plan.user_metadata)
    config = state.settings.catalogue.get(plan.base_model)
    run = state.runs.add(model_id, plan.base_model, plan.settings, plan.user_metadata)
    model = TrainedModel(
        run,
        config,
        session.session_id,
        Deduplicator("seq_id", model_id, state.requests),
        strict_sequence=state.settings.strict_sequence,
        gap_wait_s=state.settings.gap_wait_s,
    )
    state.models.add(model)
    session.model_ids.append(model_id)
    request_id = state.train(model, lambda: build(model))
    session.models.accept(model_seq_id, request.key, request.fingerprint, request_id)
    return queued(request_id, model_id)


def check_optimizer(config: OptimizerConfig | None) -> None:
    """Refusal 422 for an optimizer that this engine does not have."""
    if config is not None and config.type != AdamOptimizerConfig().type:
        raise invalid("optimizer_config", f"this server trains by adamw only, not by {config.type!r}")
