"""Sampling sessions and samples."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import attrs
import numpy as np

from tinkerwire._server import conversion
from tinkerwire._server.engine import Adapter, EngineError, Sampler, Samples
from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.decoding import SampleRun
from tinkerwire._server.engine.sampler import NO_TARGET, compute_batch_share
from tinkerwire._server.handlers.expected_tokens import check_expected_tokens
from tinkerwire._server.handlers.submission import queue_response
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import HttpError, Response, field_error
from tinkerwire._server.sessions.sample_queue import SampleTask
from tinkerwire._server.sessions.samplers import AdapterRef, SamplingSession
from tinkerwire._server.state import State
from tinkerwire._server.storage.checkpoint_paths import SAMPLER_WEIGHTS, read_path
from tinkerwire_generated.constants import SEQ_IDS_PER_COPY
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
"""Copy n of a sampling client starts its seq_ids at n times this number."""


def create_sampling_session(state: State, request: Request) -> Response:
    """Create a sampling session, once for each sampling_session_seq_id of a session."""
    body: CreateSamplingSessionRequest = request.body
    session = state.sessions.require_active(body.session_id)
    number = body.sampling_session_seq_id
    if number < 0:
        raise field_error("sampling_session_seq_id", f"must be at least 0, got {number}")
    sampler_id = session.sampler_requests.find(number, request.key, request.fingerprint)
    if sampler_id is None:
        sampler_id = f"{session.session_id}:sample:{number}"
        if state.samplers.has(sampler_id):
            raise session.sampler_requests.create_conflict(number)
        sampler = _open_session(state, sampler_id, body.base_model, body.model_path)
        state.samplers.add(sampler)
        state.record_sampler(sampler, session.session_id, None if body.model_path is None else sampler_id)
        session.sampler_requests.accept(number, request.key, request.fingerprint, sampler_id)
        session.sampler_ids.append(sampler_id)
    return Response(body=CreateSamplingSessionResponse(sampling_session_id=sampler_id))


def _open_session(state: State, sampler_id: str, base_model: str | None, model_path: str | None) -> SamplingSession:
    """Create a sampling session on a base model or on saved weights."""
    samples = state.create_sample_deduplicator(sampler_id)
    if model_path is None:
        if base_model is None:
            raise field_error("base_model", "pass base_model or model_path")
        config = state.settings.catalogue.get(base_model)
        return SamplingSession(sampler_id=sampler_id, base_model=base_model, config=config, samples=samples)
    key = read_path("model_path", model_path)
    if key.kind != SAMPLER_WEIGHTS:
        raise field_error("model_path", f"{model_path} is for training; pass a path of save_weights_for_sampler")
    state.checkpoints.get(key)
    run = state.runs.get(key.run_id)
    if base_model not in (None, run.base_model):
        raise field_error("base_model", f"must be {run.base_model} for {model_path}, got {base_model}; omit base_model")
    config = state.settings.catalogue.get(run.base_model)
    try:
        adapter = Adapter.copy_of(config.name, run.settings, state.checkpoints.read_arrays(key))
    except EngineError as error:
        raise field_error("model_path", str(error)) from None
    return SamplingSession(
        sampler_id=sampler_id,
        base_model=run.base_model,
        config=config,
        samples=samples,
        model_path=model_path,
        weights=AdapterRef(adapter),
    )


def get_sampler(state: State, request: Request) -> Response:
    """Describe the base model and the weights of a sampler."""
    session = state.samplers.get(request.path["sampler_id"])
    body = GetSamplerResponse(
        sampler_id=session.sampler_id, base_model=session.base_model, model_path=session.model_path
    )
    return Response(body=body)


def asample(state: State, request: Request) -> Response:
    """Queue samples."""
    body: SampleRequest = request.body
    session = _find_session(state, body)
    if body.seq_id is not None:
        accepted_id = session.samples.find(body.seq_id, request.key, request.fingerprint)
        if accepted_id is not None:
            return queue_response(accepted_id, num_samples=body.num_samples)
    if not 1 <= body.num_samples <= MAX_SAMPLES:
        raise field_error("num_samples", f"must be 1 to {MAX_SAMPLES}, got {body.num_samples}")
    supports_backpressure = request.headers.get("x-tinker-sampling-backpressure") == "1"
    if supports_backpressure and state.futures.pending_count >= state.settings.max_queued_samples:
        raise HttpError(429, f"{state.futures.pending_count} requests are queued; retry later", {"retry-after": "1"})
    check_expected_tokens(state, "prompt", body.prompt)
    _validate_options(body)
    seed = body.sampling_params.seed
    if seed is None:
        seed = state.derive_seed("sample", session.sampler_id.rpartition(":")[2], body.seq_id)
    completions = session.completions.for_copy((body.seq_id or 0) // SEQ_IDS_PER_COPY)
    task = _create_task(session, body, seed)
    request_id = state.futures.submit(
        partial(state.sample_queue.put, task),
        lambda: _to_response(body, state.sample_queue.compute(task)),
        listener=completions,
    )
    if body.seq_id is not None:
        session.samples.accept(body.seq_id, request.key, request.fingerprint, request_id)
    return queue_response(request_id, num_samples=body.num_samples)


def _validate_options(body: SampleRequest) -> None:
    """Reject options that no sample can satisfy."""
    if not 0 <= body.prompt_alt_tokens_k <= MAX_ALTERNATIVES:
        raise field_error("prompt_alt_tokens_k", f"must be 0 to {MAX_ALTERNATIVES}, got {body.prompt_alt_tokens_k}")
    last_n = body.prompt_logprobs_last_n
    if last_n is not None and not (body.prompt_logprobs and 1 <= last_n < _prompt_length(body)):
        raise field_error(
            "prompt_logprobs_last_n", f"must be 1 to {_prompt_length(body) - 1}, with prompt_logprobs set, got {last_n}"
        )
    target = body.target_prompt_logprobs
    if target is not None and (target.dtype != "int64" or len(target.shape or ()) != 2):
        raise field_error(
            "target_prompt_logprobs", f"must be int64 with two dimensions, got {target.dtype} {target.shape}"
        )


def _prompt_length(body: SampleRequest) -> int:
    try:
        return conversion.count_tokens("prompt", body.prompt)
    except EngineError as error:
        raise field_error("prompt", str(error)) from None


def _find_session(state: State, body: SampleRequest) -> SamplingSession:
    """Return the named sampling session, or an implicit one for the named base model or path."""
    names = [name for name in ("sampling_session_id", "base_model", "model_path") if getattr(body, name) is not None]
    if len(names) != 1:
        raise field_error("sampling_session_id", "pass one of sampling_session_id, base_model and model_path")
    if body.sampling_session_id is not None:
        return state.samplers.get(body.sampling_session_id)
    sampler_id = f"direct:{body.base_model or body.model_path}"
    if body.model_path is not None:
        # Do not reuse a session whose checkpoint was deleted or overwritten.
        sampler_id += f"@{state.checkpoints.get(read_path('model_path', body.model_path)).saved_at}"
    session = state.samplers.find_implicit(sampler_id)
    if session is None:
        session = _open_session(state, sampler_id, body.base_model, body.model_path)
        state.samplers.add_implicit(session)
    return session


def _create_task(session: SamplingSession, body: SampleRequest, seed: int | None) -> SampleTask:
    try:
        length = conversion.count_tokens("prompt", body.prompt)
    except EngineError:
        # The error becomes the result of the request.
        length = 0
    return SampleTask(
        session=session,
        start=lambda sampler: _start(session, sampler, body, seed),
        prompt_length=length,
        share=compute_batch_share(
            session.config, length, body.num_samples, body.sampling_params.max_tokens, body.topk_sample_logprobs
        ),
    )


def _start(session: SamplingSession, sampler: Sampler, body: SampleRequest, seed: int | None) -> SampleRun:
    params, target_tokens = body.sampling_params, body.target_prompt_logprobs
    prompt = conversion.to_input("prompt", body.prompt, session.config)
    return sampler.start(
        prompt.tokens,  # type: ignore[arg-type]
        patches=prompt.patches,
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
        target_tokens=None
        if target_tokens is None
        else conversion.to_array("target_prompt_logprobs", target_tokens, NO_TARGET),
        alternatives=body.prompt_alt_tokens_k,
    )


def _to_response(body: SampleRequest, samples: Samples) -> SampleResponse:
    target_tokens = body.target_prompt_logprobs
    target_logprobs, alternatives = samples.target_logprobs, samples.alternatives
    return SampleResponse(
        sequences=[
            SampledSequence(
                stop_reason=sequence.stop_reason,
                tokens=sequence.tokens,
                logprobs=sequence.logprobs,
                topk_logprobs=list(sequence.topk_logprobs) if body.topk_sample_logprobs else None,
            )
            for sequence in samples.sequences
        ],
        target_prompt_logprobs=None
        if target_tokens is None or target_logprobs is None
        else _to_target_layout(target_tokens, target_logprobs),
        prompt_alt_tokens=None
        if alternatives is None
        else PromptAltTokens(
            tokens=TensorData.from_numpy(alternatives.tokens), logprobs=TensorData.from_numpy(alternatives.logprobs)
        ),
        prompt_logprobs=_keep_last(samples.prompt_logprobs, body.prompt_logprobs_last_n),
        topk_prompt_logprobs=_keep_last(samples.topk_prompt_logprobs, body.prompt_logprobs_last_n),
    )


def _to_target_layout(target_tokens: TensorData, logprobs: FloatArray) -> TensorData:
    """Return the logprobs of target tokens, sparse if the tokens are."""
    if target_tokens.sparse_crow_indices is None:
        # Not from_numpy, which rejects the NaN of positions without a target.
        return TensorData(data=logprobs.reshape(-1), dtype="float32", shape=list(logprobs.shape))
    rows = np.repeat(np.arange(len(logprobs)), np.diff(target_tokens.sparse_crow_indices))
    return attrs.evolve(
        target_tokens, data=logprobs[rows, np.asarray(target_tokens.sparse_col_indices)], dtype="float32"
    )


def _keep_last(values: list[T | None] | None, count: int | None) -> list[T | None] | None:
    """Return the values, with None in place of all but the last ``count``."""
    if values is None or count is None:
        return values
    return [None] * max(0, len(values) - count) + values[-count:]


def join_sampling_session(state: State, request: Request) -> Response:
    """Assign a number to a copy of a sampling client, from 1; the original client has number 0."""
    body: JoinSamplingSessionRequest = request.body
    session = state.samplers.get(body.sampling_session_id)
    session.copy_count += 1
    state.journal.set_copy_count(session.sampler_id, session.copy_count)
    return Response(body=JoinSamplingSessionResponse(client_counter=session.copy_count))
