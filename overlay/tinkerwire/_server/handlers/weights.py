"""Saving and loading weights."""

from __future__ import annotations

import uuid
from functools import partial

from tinkerwire._server.engine import EngineError
from tinkerwire._server.handlers.model_creation import ModelPlan, check_optimizer, enqueue_creation
from tinkerwire._server.handlers.submission import enqueue, find_accepted, queue_response
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response, conflict_error, field_error
from tinkerwire._server.sessions.models import Effect, TrainedModel
from tinkerwire._server.sessions.samplers import AdapterRef, SamplingSession
from tinkerwire._server.state import State
from tinkerwire._server.storage.checkpoint_paths import (
    EXTERNAL_WEIGHTS,
    SAMPLER_WEIGHTS,
    WEIGHTS,
    CheckpointKey,
    read_path,
    validate_name,
)
from tinkerwire._server.storage.checkpoints import CheckpointOptions
from tinkerwire_generated.models import (
    CopyWeightsRequest,
    CopyWeightsResponse,
    LoadWeightsRequest,
    LoadWeightsResponse,
    SaveWeightsExternalRequest,
    SaveWeightsExternalResponseInternal,
    SaveWeightsForSamplerRequest,
    SaveWeightsForSamplerResponseInternal,
    SaveWeightsRequest,
    SaveWeightsResponse,
    WeightsInfoRequest,
    WeightsInfoResponse,
)

MAX_TTL_S = 100 * 366 * 86_400


def save_weights(state: State, request: Request) -> Response:
    """Save weights and optimizer state."""
    body: SaveWeightsRequest = request.body
    model = state.models.get(body.model_id)
    accepted_id = find_accepted(model, request)
    if accepted_id is not None:
        return queue_response(accepted_id, model.model_id)
    name = None if body.path is None else validate_name("path", body.path)
    ttl_s = validate_ttl(body.ttl_seconds)

    def work() -> SaveWeightsResponse:
        options = CheckpointOptions(ttl_s=ttl_s, user_metadata=body.user_metadata)
        arrays = model.engine.state_arrays()
        key = state.checkpoints.save(
            model.run, WEIGHTS, name, arrays, options, overwrite=body.overwrite, seq_id=body.seq_id
        )
        return SaveWeightsResponse(path=key.tinker_path, type="save_weights")

    return enqueue(state, request, model, work)


def save_weights_for_sampler(state: State, request: Request) -> Response:
    """Save weights for sampling, on disk or in a new sampling session."""
    body: SaveWeightsForSamplerRequest = request.body
    model = state.models.get(body.model_id)
    # Official clients use a new sampling_session_seq_id for each resend, so the fingerprint must not include it.
    fingerprint = b"" if body.sampling_session_seq_id is None else f"sampler {body.seq_id}".encode()
    accepted_id = find_accepted(model, request, fingerprint)
    if accepted_id is not None:
        return queue_response(accepted_id, model.model_id)
    ttl_s = validate_ttl(body.ttl_seconds)
    is_inflight = body.kind == "inflight"
    if body.sampling_session_seq_id is None:
        if is_inflight:
            raise field_error("kind", "inflight weights cannot be saved; pass sampling_session_seq_id instead of path")
        name = None if body.path is None else validate_name("path", body.path)
        options = CheckpointOptions(ttl_s=ttl_s, user_metadata=body.user_metadata)
        return enqueue(state, request, model, partial(_save_for_sampler, state, model, name, options, body.seq_id))
    if body.path is not None:
        raise field_error("path", "cannot be combined with sampling_session_seq_id; omit one of them")
    sampler_id = _reserve_sampler(state, request, model, body.sampling_session_seq_id)
    sampler = SamplingSession(
        sampler_id=sampler_id,
        base_model=model.run.base_model,
        config=model.config,
        samples=state.create_sample_deduplicator(sampler_id),
        # All inflight samplers of a model share their weights: a new one replaces the weights of the earlier ones.
        weights=model.inflight_weights if is_inflight else AdapterRef(),
    )
    weights_id = model.model_id if is_inflight else sampler_id
    return enqueue(
        state,
        request,
        model,
        partial(_open_sampler, state, model, sampler),
        fingerprint,
        record=lambda: state.record_sampler(sampler, model.session_id, weights_id),
    )


def _reserve_sampler(state: State, request: Request, model: TrainedModel, number: int) -> str:
    session = state.sessions.require_active(model.session_id)
    if number < 0:
        raise field_error("sampling_session_seq_id", f"must be at least 0, got {number}")
    accepted_id = session.sampler_requests.find(number, request.key, request.fingerprint)
    if accepted_id is not None:
        return accepted_id
    sampler_id = f"{session.session_id}:sample:{number}"
    if state.samplers.has(sampler_id):
        raise session.sampler_requests.create_conflict(number)
    session.sampler_requests.accept(number, request.key, request.fingerprint, sampler_id)
    session.sampler_ids.append(sampler_id)
    return sampler_id


def _open_sampler(state: State, model: TrainedModel, sampler: SamplingSession) -> SaveWeightsForSamplerResponseInternal:
    sampler.weights.adapter = model.engine.adapter_snapshot()
    state.samplers.add(sampler)
    return SaveWeightsForSamplerResponseInternal(
        sampling_session_id=sampler.sampler_id, type="save_weights_for_sampler"
    )


def _save_for_sampler(
    state: State, model: TrainedModel, name: str | None, options: CheckpointOptions, seq_id: int | None
) -> SaveWeightsForSamplerResponseInternal:
    arrays = dict(model.engine.adapter_snapshot().params)
    key = state.checkpoints.save(model.run, SAMPLER_WEIGHTS, name, arrays, options, seq_id=seq_id)
    return SaveWeightsForSamplerResponseInternal(path=key.tinker_path, type="save_weights_for_sampler")


def load_weights(state: State, request: Request) -> Response:
    """Load a checkpoint into a model with the same base model and adapter settings, or into a new model."""
    body: LoadWeightsRequest = request.body
    if body.model_id is None:
        return _create_from_checkpoint(state, request)
    for name in ("session_id", "model_seq_id", "base_model", "user_metadata", "optimizer_config"):
        if getattr(body, name) is not None:
            raise field_error(name, "only valid for a new model; omit it, or omit model_id")
    model = state.models.get(body.model_id)
    accepted_id = find_accepted(model, request)
    if accepted_id is not None:
        return queue_response(accepted_id, model.model_id)
    key = _read_training_path(body.path)

    def work() -> LoadWeightsResponse:
        _load(state, model, key, optimizer=bool(body.optimizer))
        return LoadWeightsResponse(path=body.path, model_id=model.model_id, type="load_weights")

    # The checkpoint may be deleted or replaced before a restart.
    return enqueue(state, request, model, work, effect=Effect.RECORDED)


def _create_from_checkpoint(state: State, request: Request) -> Response:
    body: LoadWeightsRequest = request.body
    if body.session_id is None or body.model_seq_id is None:
        raise field_error("model_id", "pass model_id, or session_id and model_seq_id for a new model")
    if body.seq_id is not None:
        raise field_error("seq_id", "not valid for a new model; omit it")
    check_optimizer(body.optimizer_config)
    key = _read_training_path(body.path)

    def make_plan() -> ModelPlan:
        state.checkpoints.get(key)
        run = state.runs.get(key.run_id)
        if body.base_model not in (None, run.base_model):
            text = f"must be {run.base_model} for {body.path}, got {body.base_model}; omit base_model"
            raise field_error("base_model", text)
        return ModelPlan(run.base_model, run.settings, body.user_metadata)

    def build(model: TrainedModel) -> LoadWeightsResponse:
        model.build()
        _load(state, model, key, optimizer=bool(body.optimizer))
        return LoadWeightsResponse(path=body.path, model_id=model.model_id, type="load_weights")

    return enqueue_creation(state, request, body.session_id, body.model_seq_id, make_plan, build)


def _read_training_path(path: str) -> CheckpointKey:
    key = read_path("path", path)
    if key.kind != WEIGHTS:
        raise field_error("path", f"{path} is only for sampling; pass a checkpoint of save_weights")
    return key


def _load(state: State, model: TrainedModel, key: CheckpointKey, *, optimizer: bool) -> None:
    arrays = state.checkpoints.read_arrays(key)
    saved_run, run = state.runs.get(key.run_id), model.run
    for name in ("base_model", "rank", "train_attn", "train_mlp", "train_unembed"):
        if getattr(saved_run, name) != getattr(run, name):
            raise EngineError(
                f"{key.tinker_path} has {name} {getattr(saved_run, name)} but {run.run_id} has {getattr(run, name)}; "
                "load it into a model with the same base_model and lora_config"
            )
    model.engine.load_arrays(arrays, optimizer)


def weights_info(state: State, request: Request) -> Response:
    """Describe the base model and the adapter of a checkpoint."""
    body: WeightsInfoRequest = request.body
    key = read_path("tinker_path", body.tinker_path)
    state.checkpoints.get(key)
    run = state.runs.get(key.run_id)
    return Response(
        body=WeightsInfoResponse(
            base_model=run.base_model,
            is_lora=True,
            lora_rank=run.rank,
            train_unembed=run.train_unembed,
            train_mlp=run.train_mlp,
            train_attn=run.train_attn,
        )
    )


def validate_ttl(ttl_seconds: int | None) -> float | None:
    """Return a valid time to live.

    Raises:
        HttpError: 422 unless it is positive and at most 100 years.
    """
    if ttl_seconds is not None and not 1 <= ttl_seconds <= MAX_TTL_S:
        raise field_error("ttl_seconds", f"must be 1 to {MAX_TTL_S} seconds, or null for no expiry, got {ttl_seconds}")
    return ttl_seconds


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
        key = state.checkpoints.save(model.run, EXTERNAL_WEIGHTS, name, arrays, options, seq_id=body.seq_id)
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
