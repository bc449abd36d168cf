"""Saving and loading weights."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire._server.engine import EngineError
from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.handlers.model_creation import Plan, check_optimizer, new_model
from tinkerwire._server.handlers.submission import enqueue, queued, resend
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response, invalid
from tinkerwire._server.sessions.models import TrainedModel
from tinkerwire._server.sessions.samplers import AdapterRef, SamplingSession
from tinkerwire._server.state import State
from tinkerwire._server.storage.checkpoint_paths import SAMPLER_WEIGHTS, WEIGHTS, CheckpointKey, checked_name, read_path
from tinkerwire._server.storage.checkpoints import CheckpointOptions
from tinkerwire_generated.models import (
    LoadWeightsRequest,
    LoadWeightsResponse,
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
    earlier = resend(model, request)
    if earlier is not None:
        return queued(earlier, model.model_id)
    name = None if body.path is None else checked_name("path", body.path)
    ttl_s = checked_ttl(body.ttl_seconds)

    def work() -> SaveWeightsResponse:
        about = CheckpointOptions(ttl_s=ttl_s, user_metadata=body.user_metadata)
        arrays = model.engine.state_arrays()
        key = state.checkpoints.save(model.run, WEIGHTS, name, arrays, about, overwrite=body.overwrite)
        return SaveWeightsResponse(path=key.tinker_path, type="save_weights")

    return enqueue(state, request, model, work)


def save_weights_for_sampler(state: State, request: Request) -> Response:
    """Save weights to sample from, to disk or into a new sampling session."""
    body: SaveWeightsForSamplerRequest = request.body
    model = state.models.get(body.model_id)
    # Official clients count the sampling session anew at each resend, so it is no part of what must be the same.
    same = b"" if body.sampling_session_seq_id is None else f"sampler {body.seq_id}".encode()
    earlier = resend(model, request, same)
    if earlier is not None:
        return queued(earlier, model.model_id)
    ttl_s = checked_ttl(body.ttl_seconds)
    is_inflight = body.kind == "inflight"
    if body.sampling_session_seq_id is None:
        if is_inflight:
            raise invalid("kind", "inflight weights are not saved: give sampling_session_seq_id in place of path")
        name = None if body.path is None else checked_name("path", body.path)
        about = CheckpointOptions(ttl_s=ttl_s, user_metadata=body.user_metadata)
        return enqueue(state, request, model, lambda: _save_for_sampler(state, model, name, about))
    if body.path is not None:
        raise invalid("path", "leave it out, or leave out sampling_session_seq_id: weights are saved or sampled from")
    sampler_id = _reserve_sampler(state, request, model, body.sampling_session_seq_id)
    return enqueue(state, request, model, lambda: _open_sampler(state, model, sampler_id, is_inflight), same)


def _reserve_sampler(state: State, request: Request, model: TrainedModel, number: int) -> str:
    session = state.sessions.alive(model.session_id)
    if number < 0:
        raise invalid("sampling_session_seq_id", f"expected 0 or more, got {number}")
    earlier = session.samplers.find(number, request.key, request.fingerprint)
    if earlier is not None:
        return earlier
    sampler_id = f"{session.session_id}:sample:{number}"
    if state.samplers.has(sampler_id):
        raise session.samplers.conflict(number)
    session.samplers.accept(number, request.key, request.fingerprint, sampler_id)
    session.sampler_ids.append(sampler_id)
    return sampler_id


def _open_sampler(
    state: State, model: TrainedModel, sampler_id: str, is_inflight: bool
) -> SaveWeightsForSamplerResponseInternal:
    # The inflight weights of a model are one thing: a new sampler of them changes what the earlier ones sample from.
    weights = model.inflight if is_inflight else AdapterRef()
    weights.adapter = model.engine.adapter_snapshot()
    state.samplers.add(
        SamplingSession(
            sampler_id=sampler_id,
            base_model=model.run.base_model,
            config=model.config,
            samples=state.resends_of(sampler_id),
            weights=weights,
        )
    )
    return SaveWeightsForSamplerResponseInternal(sampling_session_id=sampler_id, type="save_weights_for_sampler")


def _save_for_sampler(
    state: State, model: TrainedModel, name: str | None, about: CheckpointOptions
) -> SaveWeightsForSamplerResponseInternal:
    arrays = dict(model.engine.adapter_snapshot().params)
    key = state.checkpoints.save(model.run, SAMPLER_WEIGHTS, name, arrays, about)
    return SaveWeightsForSamplerResponseInternal(path=key.tinker_path, type="save_weights_for_sampler")


def load_weights(state: State, request: Request) -> Response:
    """Load a checkpoint into a model of the same base model and adapter, or into a new one."""
    body: LoadWeightsRequest = request.body
    if body.model_id is None:
        return _load_new(state, request)
    for name in ("session_id", "model_seq_id", "base_model", "user_metadata", "optimizer_config"):
        if getattr(body, name) is not None:
            raise invalid(name, "it is for a new model; leave it out, or leave out model_id")
    model = state.models.get(body.model_id)
    earlier = resend(model, request)
    if earlier is not None:
        return queued(earlier, model.model_id)
    key = _training_path(body.path)

    def work() -> LoadWeightsResponse:
        _load(state, model, key, optimizer=bool(body.optimizer))
        return LoadWeightsResponse(path=body.path, model_id=model.model_id, type="load_weights")

    return enqueue(state, request, model, work)


def _load_new(state: State, request: Request) -> Response:
    body: LoadWeightsRequest = request.body
    if body.session_id is None or body.model_seq_id is None:
        raise invalid("model_id", "give it, or session_id and model_seq_id, which name a new model")
    if body.seq_id is not None:
        raise invalid("seq_id", "a new model has none yet; leave it out")
    check_optimizer(body.optimizer_config)
    key = _training_path(body.path)

    def planned() -> Plan:
        state.checkpoints.get(key)
        saved = state.runs.get(key.run_id)
        if body.base_model not in (None, saved.base_model):
            raise invalid("base_model", f"{body.path} is of {saved.base_model}, not of {body.base_model}; leave it out")
        return Plan(saved.base_model, saved.settings, body.user_metadata)

    def build(model: TrainedModel) -> LoadWeightsResponse:
        model.build()
        _load(state, model, key, optimizer=bool(body.optimizer))
        return LoadWeightsResponse(path=body.path, model_id=model.model_id, type="load_weights")

    return new_model(state, request, body.session_id, body.model_seq_id, planned, build)


def _training_path(path: str) -> CheckpointKey:
    key = read_path("path", path)
    if key.kind != WEIGHTS:
        raise invalid("path", f"{path} is for sampling only; load a checkpoint that save_weights made")
    return key


def _load(state: State, model: TrainedModel, key: CheckpointKey, *, optimizer: bool) -> None:
    arrays = state.checkpoints.arrays(key)
    saved, own = state.runs.get(key.run_id), model.run
    for what in ("base_model", "rank", "train_attn", "train_mlp", "train_unembed"):
        if getattr(saved, what) != getattr(own, what):
            raise EngineError(
                f"{key.tinker_path} has {what} {getattr(saved, what)} but {own.run_id} has {getattr(own, what)}; "
                "load it into a model created with the same base_model and lora_config"
            )
    model.engine.load_arrays(arrays, optimizer)


def weights_info(state: State, request: Request) -> Response:
    """Say of which base model and adapter a checkpoint is."""
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


def checked_ttl(ttl_seconds: int | None) -> float | None:
    """The time to live; Refusal 422 unless it is positive and at most 100 years."""
    if ttl_seconds is not None and not 1 <= ttl_seconds <= MAX_TTL_S:
        raise invalid("ttl_seconds", f"expected 1 to {MAX_TTL_S} seconds, or null to keep it, got {ttl_seconds}")
    return ttl_seconds


HANDLERS: Mapping[str, Handler] = {
    "save_weights": save_weights,
    "save_weights_for_sampler": save_weights_for_sampler,
    "load_weights": load_weights,
    "weights_info": weights_info,
}
