"""Models and the operations that train them."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire.local import inputs
from tinkerwire.local.answers import Answer, Refusal, invalid
from tinkerwire.local.engine import BASE_MODELS, EngineError, LoraSettings
from tinkerwire.local.handlers.handler import Handler
from tinkerwire.local.handlers.queueing import enqueue, queued, resend
from tinkerwire.local.models import TrainedModel
from tinkerwire.local.promises import Promise
from tinkerwire.local.requests import Request
from tinkerwire.local.state import State
from tinkerwire_generated.models import (
    CreateModelRequest,
    CreateModelResponse,
    ForwardBackwardOutput,
    ForwardBackwardRequest,
    ForwardRequest,
    GetInfoRequest,
    GetInfoResponse,
    ModelData,
    OptimStepRequest,
    OptimStepResponse,
    UnloadModelRequest,
    UnloadModelResponse,
)

DEFAULT_RANK = 32
ARCHITECTURE = "byte-transformer"
TOKENIZER = "tinkerwire/bytes"


def create_model(state: State, request: Request) -> Answer:
    """Create a model; the same model_seq_id of a session is the same model."""
    body: CreateModelRequest = request.body
    session = state.sessions.alive(body.session_id)
    if body.model_seq_id < 0:
        raise invalid("model_seq_id", f"expected 0 or more, got {body.model_seq_id}")
    earlier = session.models.find(body.model_seq_id, request.key, request.fingerprint)
    if earlier is not None:
        return queued(earlier)
    model_id = f"{session.session_id}:train:{body.model_seq_id}"
    settings = _settings(state, body)
    run = state.runs.add(model_id, body.base_model, settings, body.user_metadata)
    model = TrainedModel(run, session.session_id, strict_sequence=state.settings.strict_sequence)
    state.models.add(model)
    session.model_ids.append(model_id)

    def work() -> CreateModelResponse:
        model.build()
        return CreateModelResponse(model_id=model_id)

    promise = state.train(model, work)
    session.models.accept(body.model_seq_id, request.key, request.fingerprint, promise)
    return queued(promise)


def _settings(state: State, body: CreateModelRequest) -> LoraSettings:
    config = BASE_MODELS.get(body.base_model)
    if config is None:
        raise Refusal(404, unknown_base_model(body.base_model))
    lora = body.lora_config
    seed = lora.seed if lora is not None else None
    if seed is None:
        seed = state.seed_for("adapter", body.model_seq_id)
    if lora is None:
        settings = LoraSettings(rank=min(DEFAULT_RANK, config.d_model), seed=seed)
    else:
        settings = LoraSettings(
            rank=lora.rank,
            seed=seed,
            train_attn=lora.train_attn,
            train_mlp=lora.train_mlp,
            train_unembed=lora.train_unembed,
        )
    try:
        settings.check(config)
    except EngineError as fault:
        raise invalid("lora_config", str(fault)) from None
    return settings


def unknown_base_model(name: str) -> str:
    """The text for a base model that does not exist."""
    return f"there is no base model {name[:200]!r}; this server has {', '.join(BASE_MODELS)}"


def get_info(state: State, request: Request) -> Answer:
    """Describe a model."""
    body: GetInfoRequest = request.body
    run = state.models.get(body.model_id).run
    data = ModelData(arch=ARCHITECTURE, model_name=run.base_model, tokenizer_id=TOKENIZER)
    return Answer(
        body=GetInfoResponse(
            model_data=data,
            model_id=run.run_id,
            is_lora=True,
            lora_rank=run.rank,
            model_name=run.base_model,
            type="get_info",
        )
    )


def unload_model(state: State, request: Request) -> Answer:
    """Forget a model once what is queued on it is done."""
    body: UnloadModelRequest = request.body
    model = state.models.get(body.model_id)
    promise: Promise = state.train(model, lambda: UnloadModelResponse(model_id=body.model_id, type="unload_model"))
    state.models.remove(body.model_id, "it was unloaded")
    model.worker.close(finish=True)
    return queued(promise)


def forward(state: State, request: Request) -> Answer:
    """Compute a loss."""
    body: ForwardRequest = request.body
    return _loss(state, request, body.model_id, gradients=False)


def forward_backward(state: State, request: Request) -> Answer:
    """Compute a loss and its gradients."""
    body: ForwardBackwardRequest = request.body
    return _loss(state, request, body.model_id, gradients=True)


def _loss(state: State, request: Request, model_id: str, *, gradients: bool) -> Answer:
    model = state.models.get(model_id)
    earlier = resend(model, request)
    if earlier is not None:
        return queued(earlier)
    asked = request.body.forward_backward_input if gradients else request.body.forward_input

    def work() -> ForwardBackwardOutput:
        compute = model.engine.forward_backward if gradients else model.engine.forward
        return inputs.output(compute(inputs.examples(asked.data), asked.loss_fn, asked.loss_fn_config))

    return enqueue(state, request, model, work)


def optim_step(state: State, request: Request) -> Answer:
    """Update the weights."""
    body: OptimStepRequest = request.body
    model = state.models.get(body.model_id)
    earlier = resend(model, request)
    if earlier is not None:
        return queued(earlier)
    adam = body.adam_params
    if adam is None:
        raise invalid("adam_params", "this server trains by AdamW; give its settings")

    def work() -> OptimStepResponse:
        metrics = model.engine.optim_step(
            learning_rate=adam.learning_rate,
            beta1=adam.beta1,
            beta2=adam.beta2,
            eps=adam.eps,
            weight_decay=adam.weight_decay,
            grad_clip_norm=adam.grad_clip_norm,
        )
        return OptimStepResponse(metrics=metrics)

    return enqueue(state, request, model, work)


HANDLERS: Mapping[str, Handler] = {
    "create_model": create_model,
    "get_info": get_info,
    "unload_model": unload_model,
    "forward": forward,
    "forward_backward": forward_backward,
    "optim_step": optim_step,
}
