"""Losses that users make: kept for their session, computed where torch is installed."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire._server.custom_loss.graph import GraphError, LossGraph, checked
from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.handlers.submission import queued
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import NO_RETRY, HttpError, Response, invalid
from tinkerwire._server.sessions.sessions import Session
from tinkerwire._server.state import State
from tinkerwire_base.tensors import is_torch_installed
from tinkerwire_generated.models import CreateCustomLossRequest, CreateCustomLossResponse

CUSTOM = "custom"
"""The loss_fn that stands for the loss named by loss_id."""


def create_custom_loss(state: State, request: Request) -> Response:
    """Check a loss and keep it; the same custom_loss_seq_id of a session is the same loss."""
    body: CreateCustomLossRequest = request.body
    session = state.sessions.alive(body.session_id)
    number = body.custom_loss_seq_id
    if number < 0:
        raise invalid("custom_loss_seq_id", f"expected 0 or more, got {number}")
    earlier = session.new_losses.find(number, request.key, request.fingerprint)
    if earlier is not None:
        return queued(earlier)
    loss_id = f"{session.session_id}:loss:{number}"
    if loss_id in session.losses:
        raise session.new_losses.conflict(number)
    try:
        graph = checked(body)
    except GraphError as error:
        raise invalid("graph", str(error)) from None
    if not is_torch_installed():
        raise HttpError(
            501,
            "create_custom_loss: this server computes custom losses with torch, which is not installed here; install "
            "it there, or leave its flag custom_loss_server_side off, so that clients compute them",
            NO_RETRY,
        )
    session.losses[loss_id] = graph
    request_id = state.futures.run(state.sampling.put, lambda: CreateCustomLossResponse(loss_id=loss_id))
    session.new_losses.accept(number, request.key, request.fingerprint, request_id)
    return queued(request_id)


def loss_of(session: Session, config: Mapping[str, float | str] | None) -> LossGraph:
    """The loss that the config of loss custom names.

    Raises:
        Refusal: 422 for another config, 404 for a loss that the session does not have.
    """
    loss_id = (config or {}).get("loss_id")
    if not isinstance(loss_id, str) or len(config or {}) != 1:
        raise invalid("loss_fn_config", f"loss {CUSTOM} takes one setting, loss_id, which create_custom_loss gave")
    graph = session.losses.get(loss_id)
    if graph is None:
        raise HttpError(
            404, f"session {session.session_id} has no loss {loss_id[:200]!r}; create_custom_loss gives one"
        )
    return graph


HANDLERS: Mapping[str, Handler] = {"create_custom_loss": create_custom_loss}
