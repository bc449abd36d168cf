"""How operations on a model are put into its queue, once each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response
from tinkerwire._server.sessions.models import TrainedModel
from tinkerwire._server.state import State
from tinkerwire_generated.models import UntypedAPIFuture


def queued(request_id: str, model_id: str | None = None, num_samples: int | None = None) -> Response:
    """The answer that promises a result; for samples, with an identifier of each."""
    ids = None if num_samples is None else [f"{request_id}:{number}" for number in range(num_samples)]
    return Response(body=UntypedAPIFuture(request_id=request_id, model_id=model_id, sample_sequence_ids=ids))


def resend(model: TrainedModel, request: Request, fingerprint: bytes | None = None) -> str | None:
    """Return the request id of the same operation, if it was sent before; Refusal 409 when its seq_id is out of order.

    Args:
        fingerprint: what makes two requests the same, when that is not all of their bytes.
    """
    if request.body.seq_id is None:
        return None
    return model.sequence.find(request.body.seq_id, request.key, fingerprint or request.fingerprint)


def enqueue(
    state: State,
    request: Request,
    model: TrainedModel,
    work: Callable[[], Any],
    fingerprint: bytes | None = None,
) -> Response:
    """Queue a new operation on its model and count its seq_id."""
    seq_id = request.body.seq_id
    request_id = state.train(model, work, seq_id)
    if seq_id is not None:
        model.sequence.accept(seq_id, request.key, fingerprint or request.fingerprint, request_id)
    return queued(request_id, model.model_id)
