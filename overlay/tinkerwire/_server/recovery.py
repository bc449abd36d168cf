"""Recovery: the state that an earlier server on the folder has left in its journal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tinkerwire._server.custom_loss.graph import GraphError, validate_graph
from tinkerwire._server.engine import Adapter, EngineError, LoraSettings
from tinkerwire._server.futures.completion_log import CompletionLog
from tinkerwire._server.handlers import HANDLERS
from tinkerwire._server.handlers.custom_losses import add_loss
from tinkerwire._server.handlers.training import loss_work, optim_work
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.http.validation import Validator
from tinkerwire._server.ordering.seq_ids import Deduplicator
from tinkerwire._server.sessions.models import TrainedModel
from tinkerwire._server.sessions.samplers import AdapterRef, SamplingSession
from tinkerwire._server.state import State
from tinkerwire._server.storage.atomic_files import unpack_arrays
from tinkerwire._server.storage.journal import StoredOperation, StoredRequest
from tinkerwire_base.call import WireResponse
from tinkerwire_generated import models as generated_models
from tinkerwire_generated.operations import OPERATIONS

log = logging.getLogger("tinkerwire._server")

_REPLAYED_WORK: Mapping[str, Callable[[TrainedModel, Any], Callable[[], Any]]] = {
    "forward_backward": loss_work,
    "optim_step": optim_work,
}
"""Functions that return the work of an operation to replay."""


def recover(state: State, validator: Validator) -> None:
    """Fill a new state from its journal, and queue the work that was pending or is replayed.

    Args:
        state: the state, with its lock held.
        validator: parses the bodies of requests.
    """
    if state.journal.is_empty:
        return
    with state.journal:
        state.sessions.restore()
        _restore_models(state)
        _restore_samplers(state)
        _restore_results(state)
        state.sessions.expire()
        for operation in state.journal.read_operations():
            _resume(state, validator, operation)
        # After the operations, whose handlers would recognise them as resent.
        state.samples.restore()
        state.requests.restore()
        for key, name, fingerprint, status, headers, content in state.journal.read_responses():
            response = WireResponse(status=status, headers=orjson.loads(headers), content=content)
            state.idempotency_cache.restore(key, name, fingerprint, response)


def _restore_models(state: State) -> None:
    settings = state.settings
    for model_id, session_id, last_seq_id in state.journal.read_models():
        run = state.runs.find(model_id)
        if run is None or run.base_model not in settings.catalogue.models:
            log.warning("model %s cannot be resumed: its run.json, or its base model, is missing", model_id)
            continue
        session = state.sessions.get(session_id)
        model = TrainedModel(
            run,
            settings.catalogue.get(run.base_model),
            session_id,
            Deduplicator("seq_id", model_id, state.requests),
            state.journal,
            strict_sequence=settings.strict_sequence,
            gap_wait_s=settings.gap_wait_s,
        )
        model.restore(last_seq_id)
        state.models.add(model)
        session.model_ids.append(model_id)
    for model_id, seq_id in state.journal.read_skipped():
        model_or_none = state.models.find(model_id)
        if model_or_none is not None:
            model_or_none.seq_ids.reorder_buffer.skip(seq_id)


def _restore_samplers(state: State) -> None:
    weights = {name: (settings, arrays) for name, settings, arrays in state.journal.read_weights()}
    refs: dict[str, AdapterRef] = {}
    last_cursor = state.journal.read_result_count()
    for row in state.journal.read_samplers():
        sampler_id, session_id, base_model, model_path, weights_id, copy_count = row
        if base_model not in state.settings.catalogue.models:
            log.warning("sampling session %s cannot be resumed: unknown base model %s", sampler_id, base_model)
            continue
        config = state.settings.catalogue.get(base_model)
        ref = refs.get(weights_id) if weights_id is not None else AdapterRef()
        if ref is None:
            model = state.models.find(weights_id)
            ref = refs[weights_id or ""] = AdapterRef() if model is None else model.inflight_weights
            settings, arrays = weights[weights_id or ""]
            ref.adapter = Adapter.copy_of(config.name, LoraSettings(**settings), unpack_arrays(arrays))
        sampler = SamplingSession(
            sampler_id=sampler_id,
            base_model=base_model,
            config=config,
            samples=state.create_sample_deduplicator(sampler_id),
            model_path=model_path,
            weights=ref,
            # No sampling session has finished more samples than all of them together.
            completions=CompletionLog(sampler_id, last_cursor),
            copy_count=copy_count,
        )
        state.samplers.add(sampler)
        state.sessions.get(session_id).sampler_ids.append(sampler_id)


def _restore_results(state: State) -> None:
    for result in state.journal.read_results():
        listener = None
        if result.sampler_id is not None and state.samplers.has(result.sampler_id):
            listener = state.samplers.get(result.sampler_id).completions.for_copy(result.copy)
        state.futures.restore(result, getattr(generated_models, result.model), listener)


def _resume(state: State, validator: Validator, operation: StoredOperation) -> None:
    """Queue the work of an operation; an operation that cannot be queued fails with the reason."""
    try:
        request = _parse(validator, operation.request)
        if operation.executed:
            _replay(state, request)
        else:
            with state.futures.resume(operation.number):
                HANDLERS[request.operation](state, request)
    except (HttpError, EngineError, GraphError) as error:
        reason = f"{operation.request.operation} cannot be resumed after the restart of the server: {error}"
        log.warning("%s", reason)
        if not operation.executed:
            state.futures.fail(operation.number, operation.owner, reason)


def _replay(state: State, request: Request) -> None:
    """Queue the work of an operation whose result is known, for its effect on the model."""
    if request.operation == "create_custom_loss":
        session = state.sessions.require_active(request.body.session_id)
        loss_id = f"{session.session_id}:loss:{request.body.custom_loss_seq_id}"
        add_loss(state, session, loss_id, validate_graph(request.body))
        return
    model = state.models.get(request.body.model_id)
    work = _REPLAYED_WORK[request.operation](model, request.body)

    def run() -> None:
        try:
            model.measure(work)
        except (HttpError, EngineError):
            # It failed in the same way when its result was computed.
            log.debug("%s of %s failed again", request.operation, model.model_id)

    model.worker.put(run)


def _parse(validator: Validator, stored: StoredRequest) -> Request:
    operation = OPERATIONS[stored.operation]
    return Request(
        operation=stored.operation,
        path={},
        query={},
        body=validator.parse_body(operation, stored.content, stored.headers),
        headers=stored.headers,
        key=stored.key,
        fingerprint=stored.fingerprint,
    )
