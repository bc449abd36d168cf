"""Sampling sessions and samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import attrs
import numpy as np

from tinkerwire._server import conversion
from tinkerwire._server.engine import Adapter, EngineError
from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.sampler import NOTHING
from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.handlers.submission import queued
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import HttpError, Response, invalid
from tinkerwire._server.sessions.samplers import AdapterRef, SamplingSession
from tinkerwire._server.state import State
from tinkerwire._server.storage.checkpoint_paths import SAMPLER_WEIGHTS, read_path
from tinkerwire_generated.models import (
    CreateSamplingSessionRequest,
    CreateSamplingSessionResponse,
    GetSamplerResponse,
    JoinSamplingSessionRequest,
    JoinSamplingSessionResponse,
    PromptAltTokens,
    SampledSequence,
    SampleRequest,
    SampleResponse,
    TensorData,
)

T = TypeVar("T")
MAX_SAMPLES = 1024
MAX_ALTERNATIVES = 1024
SEQ_IDS_PER_CLONE = 1_000_000_000
"""The copy of number n of a sampling client counts its seq_ids from n times this."""


def create_sampling_session(state: State, request: Request) -> Response:
    """Open a sampling session; the same sampling_session_seq_id of a session is the same one."""
    body: CreateSamplingSessionRequest = request.body
    session = state.sessions.alive(body.session_id)
    number = body.sampling_session_seq_id
    if number < 0:
        raise invalid("sampling_session_seq_id", f"expected 0 or more, got {number}")
    sampler_id = session.samplers.find(number, request.key, request.fingerprint)
    if sampler_id is None:
        sampler_id = f"{session.session_id}:sample:{number}"
        if state.samplers.has(sampler_id):
            raise session.samplers.conflict(number)
        state.samplers.add(_opened(state, sampler_id, body.base_model, body.model_path))
        session.samplers.accept(number, request.key, request.fingerprint, sampler_id)
        session.sampler_ids.append(sampler_id)
    return Response(body=CreateSamplingSessionResponse(sampling_session_id=sampler_id))


def _opened(state: State, sampler_id: str, base_model: str | None, model_path: str | None) -> SamplingSession:
    """Open a sampling session on a base model or on saved weights, whichever is given."""
    samples = state.resends_of(sampler_id)
    if model_path is None:
        if base_model is None:
            raise invalid("base_model", "give base_model or model_path")
        config = state.settings.catalogue.get(base_model)
        return SamplingSession(sampler_id=sampler_id, base_model=base_model, config=config, samples=samples)
    key = read_path("model_path", model_path)
    if key.kind != SAMPLER_WEIGHTS:
        raise invalid("model_path", f"{model_path} is for training; sample from what save_weights_for_sampler saved")
    state.checkpoints.get(key)
    run = state.runs.get(key.run_id)
    if base_model not in (None, run.base_model):
        raise invalid("base_model", f"{model_path} is of {run.base_model}, not of {base_model}; leave base_model out")
    config = state.settings.catalogue.get(run.base_model)
    try:
        adapter = Adapter.copy_of(config.name, run.settings, state.checkpoints.arrays(key))
    except EngineError as error:
        raise invalid("model_path", str(error)) from None
    return SamplingSession(
        sampler_id=sampler_id,
        base_model=run.base_model,
        config=config,
        samples=samples,
        model_path=model_path,
        weights=AdapterRef(adapter),
    )


def get_sampler(state: State, request: Request) -> Response:
    """Say of which base model and weights a sampler is."""
    session = state.samplers.get(request.path["sampler_id"])
    body = GetSamplerResponse(
        sampler_id=session.sampler_id, base_model=session.base_model, model_path=session.model_path
    )
    return Response(body=body)


def asample(state: State, request: Request) -> Response:
    """Queue the drawing of samples."""
    body: SampleRequest = request.body
    session = _session_of(state, body)
    if body.seq_id is not None:
        earlier = session.samples.find(body.seq_id, request.key, request.fingerprint)
        if earlier is not None:
            return queued(earlier, num_samples=body.num_samples)
    if not 1 <= body.num_samples <= MAX_SAMPLES:
        raise invalid("num_samples", f"expected 1 to {MAX_SAMPLES}, got {body.num_samples}")
    wants_push_back = request.headers.get("x-tinker-sampling-backpressure") == "1"
    if wants_push_back and state.futures.open_count >= state.settings.max_queued_samples:
        raise HttpError(429, f"{state.futures.open_count} requests are queued; come again later", {"retry-after": "1"})
    _check_wishes(body)
    seed = body.sampling_params.seed
    if seed is None:
        seed = state.seed_for("sample", session.sampler_id.rpartition(":")[2], body.seq_id)
    completions = session.completions.of_clone((body.seq_id or 0) // SEQ_IDS_PER_CLONE)
    request_id = state.futures.run(
        state.sampling.put, lambda: _sample(state, session, body, seed), listener=completions
    )
    if body.seq_id is not None:
        session.samples.accept(body.seq_id, request.key, request.fingerprint, request_id)
    return queued(request_id, num_samples=body.num_samples)


def _check_wishes(body: SampleRequest) -> None:
    """Refuse what nobody can give."""
    if not 0 <= body.prompt_alt_tokens_k <= MAX_ALTERNATIVES:
        raise invalid("prompt_alt_tokens_k", f"expected 0 to {MAX_ALTERNATIVES}, got {body.prompt_alt_tokens_k}")
    last_n = body.prompt_logprobs_last_n
    if last_n is not None and not (body.prompt_logprobs and 1 <= last_n < _length(body)):
        raise invalid(
            "prompt_logprobs_last_n", f"expected 1 to {_length(body) - 1}, with prompt_logprobs, got {last_n}"
        )
    target = body.target_prompt_logprobs
    if target is not None and (target.dtype != "int64" or len(target.shape or ()) != 2):
        raise invalid("target_prompt_logprobs", f"expected int64 of two dimensions, got {target.dtype} {target.shape}")


def _length(body: SampleRequest) -> int:
    try:
        return len(conversion.tokens("prompt", body.prompt))
    except EngineError as error:
        raise invalid("prompt", str(error)) from None


def _session_of(state: State, body: SampleRequest) -> SamplingSession:
    """The sampling session that is named, or one for the base model or path that is."""
    named = [name for name in ("sampling_session_id", "base_model", "model_path") if getattr(body, name) is not None]
    if len(named) != 1:
        raise invalid("sampling_session_id", "give one of sampling_session_id, base_model and model_path")
    if body.sampling_session_id is not None:
        return state.samplers.get(body.sampling_session_id)
    sampler_id = f"direct:{body.base_model or body.model_path}"
    if body.model_path is not None:
        # What was deleted is not sampled from, nor what another of the same name has taken the place of.
        sampler_id += f"@{state.checkpoints.get(read_path('model_path', body.model_path)).saved_at}"
    session = state.samplers.direct(sampler_id)
    if session is None:
        session = _opened(state, sampler_id, body.base_model, body.model_path)
        state.samplers.add_direct(session)
    return session


def _sample(state: State, session: SamplingSession, body: SampleRequest, seed: int | None) -> SampleResponse:
    params, asked = body.sampling_params, body.target_prompt_logprobs
    samples = state.samplers.sampler(session).sample(
        conversion.tokens("prompt", body.prompt),  # type: ignore[arg-type]
        num_samples=body.num_samples,
        max_tokens=params.max_tokens,
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        stop=params.stop,
        seed=seed,
        prompt_logprobs=bool(body.prompt_logprobs),
        topk_prompt_logprobs=body.topk_prompt_logprobs,
        topk_sample_logprobs=body.topk_sample_logprobs,
        target_tokens=None if asked is None else conversion.array("target_prompt_logprobs", asked, NOTHING),
        alternatives=body.prompt_alt_tokens_k,
    )
    target, drawn = samples.target_logprobs, samples.alternatives
    return SampleResponse(
        sequences=[
            SampledSequence(
                stop_reason=each.stop_reason,
                tokens=each.tokens,
                logprobs=each.logprobs,
                topk_logprobs=list(each.topk_logprobs) if body.topk_sample_logprobs else None,
            )
            for each in samples.sequences
        ],
        target_prompt_logprobs=None if asked is None or target is None else _laid_out_as(asked, target),
        prompt_alt_tokens=None
        if drawn is None
        else PromptAltTokens(
            tokens=TensorData.from_numpy(drawn.tokens), logprobs=TensorData.from_numpy(drawn.logprobs)
        ),
        prompt_logprobs=_last(samples.prompt_logprobs, body.prompt_logprobs_last_n),
        topk_prompt_logprobs=_last(samples.topk_prompt_logprobs, body.prompt_logprobs_last_n),
    )


def _laid_out_as(asked: TensorData, logprobs: FloatArray) -> TensorData:
    """The logprobs of target tokens, sparse if those were."""
    if asked.sparse_crow_indices is None:
        # Not from_numpy, which refuses the NaN of places without a question.
        return TensorData(data=logprobs.reshape(-1), dtype="float32", shape=list(logprobs.shape))
    rows = np.repeat(np.arange(len(logprobs)), np.diff(asked.sparse_crow_indices))
    return attrs.evolve(asked, data=logprobs[rows, np.asarray(asked.sparse_col_indices)], dtype="float32")


def _last(values: list[T | None] | None, count: int | None) -> list[T | None] | None:
    """The values, with None in place of those before the last ``count``."""
    if values is None or count is None:
        return values
    return [None] * max(0, len(values) - count) + values[-count:]


def join_sampling_session(state: State, request: Request) -> Response:
    """Number the copies of a sampling client, from 1; the first client itself is 0."""
    body: JoinSamplingSessionRequest = request.body
    session = state.samplers.get(body.sampling_session_id)
    session.copies += 1
    return Response(body=JoinSamplingSessionResponse(client_counter=session.copies))


HANDLERS: Mapping[str, Handler] = {
    "create_sampling_session": create_sampling_session,
    "get_sampler": get_sampler,
    "asample": asample,
    "join_sampling_session": join_sampling_session,
}
