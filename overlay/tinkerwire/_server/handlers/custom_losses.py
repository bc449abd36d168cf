"""Custom losses: graphs that users define, kept for their session and computed with torch."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire._server.custom_loss.graph import GraphError, LossGraph, validate_graph
from tinkerwire._server.handlers.submission import queue_response
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import NO_RETRY, HttpError, Response, field_error
from tinkerwire._server.sessions.sessions import ServerSession
from tinkerwire._server.state import State
from tinkerwire_base.tensors import is_torch_installed
from tinkerwire_generated.models import CreateCustomLossRequest, CreateCustomLossResponse

CUSTOM = "custom"
"""The loss_fn of all custom losses; loss_id in its config names the loss."""


def create_custom_loss(state: State, request: Request) -> Response:
    """Validate and keep a loss; the same custom_loss_seq_id of a session returns the same loss."""
    body: CreateCustomLossRequest = request.body
    session = state.sessions.require_active(body.session_id)
    number = body.custom_loss_seq_id
    if number < 0:
        raise field_error("custom_loss_seq_id", f"must be at least 0, got {number}")
    accepted_id = session.loss_requests.find(number, request.key, request.fingerprint)
    if accepted_id is not None:
        return queue_response(accepted_id)
    loss_id = f"{session.session_id}:loss:{number}"
    if loss_id in state.losses:
        raise session.loss_requests.create_conflict(number)
    try:
        graph = validate_graph(body)
    except GraphError as error:
        raise field_error("graph", str(error)) from None
    if not is_torch_installed():
        raise HttpError(
            501,
            "create_custom_loss: this server computes custom losses with torch, which is not installed; install torch "
            "in the server's environment, or omit flag custom_loss_server_side, so that clients compute the losses",
            NO_RETRY,
        )
    add_loss(state, session, loss_id, graph)
    request_id = state.futures.submit(
        state.loss_worker.put,
        lambda: CreateCustomLossResponse(loss_id=loss_id),
        owner=session.session_id,
        record=state.journal.keep_operation,
    )
    session.loss_requests.accept(number, request.key, request.fingerprint, request_id)
    return queue_response(request_id)


def add_loss(state: State, session: ServerSession, loss_id: str, graph: LossGraph) -> None:
    """Add a loss to a session."""
    state.losses[loss_id] = graph
    session.loss_ids.append(loss_id)


def find_loss(state: State, session: ServerSession, config: Mapping[str, float | str] | None) -> LossGraph:
    """Return the custom loss that a loss_fn_config names.

    Raises:
        HttpError: 422 for an invalid config, 404 for a loss that does not belong to the session.
    """
    loss_id = (config or {}).get("loss_id")
    if not isinstance(loss_id, str) or len(config or {}) != 1:
        raise field_error("loss_fn_config", f"loss {CUSTOM}: must only have loss_id, as create_custom_loss returns it")
    if loss_id not in session.loss_ids:
        text = f"session {session.session_id} has no loss {loss_id[:200]!r}; create one with create_custom_loss"
        raise HttpError(404, text)
    return state.losses[loss_id]
