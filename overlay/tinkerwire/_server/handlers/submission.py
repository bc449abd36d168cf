"""Submission of operations to the queue of their model, once each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response
from tinkerwire._server.sessions.models import Effect, TrainedModel
from tinkerwire._server.state import State
from tinkerwire_generated.models import UntypedAPIFuture


def queue_response(request_id: str, model_id: str | None = None, num_samples: int | None = None) -> Response:
    """Create the response with the request id of queued work and, for samples, an id for each sequence."""
    sequence_ids = None if num_samples is None else [f"{request_id}:{number}" for number in range(num_samples)]
    return Response(body=UntypedAPIFuture(request_id=request_id, model_id=model_id, sample_sequence_ids=sequence_ids))


def find_accepted(model: TrainedModel, request: Request, fingerprint: bytes | None = None) -> str | None:
    """Return the request id of an operation that was accepted before; None for a new operation.

    Args:
        model: the model of the operation.
        request: the request.
        fingerprint: replaces the fingerprint of the request, where equal operations may differ in their bytes.

    Raises:
        HttpError: 409 if the seq_id is out of order.
    """
    if request.body.seq_id is None:
        return None
    return model.seq_ids.find(request.body.seq_id, request.key, fingerprint or request.fingerprint)


def enqueue(
    state: State,
    request: Request,
    model: TrainedModel,
    work: Callable[[], Any],
    fingerprint: bytes | None = None,
    *,
    effect: Effect = Effect.NONE,
    record: Callable[[], None] | None = None,
) -> Response:
    """Queue a new operation on its model and record its seq_id.

    Args:
        state: state of the server.
        request: the request.
        model: the model of the operation.
        work: the work; its return value is the result.
        fingerprint: see :func:`find_accepted`.
        effect: effect of the work on the model.
        record: records an object that the work created, in the transaction of its result.
    """
    seq_id = request.body.seq_id
    request_id = state.enqueue_training(model, work, seq_id, effect, record)
    if seq_id is not None:
        model.seq_ids.accept(seq_id, request.key, fingerprint or request.fingerprint, request_id)
    return queue_response(request_id, model.model_id)
