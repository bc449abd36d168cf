"""Models and the operations that train them."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire._server import conversion
from tinkerwire._server.custom_loss.evaluation import train
from tinkerwire._server.engine import EngineError, LoraSettings
from tinkerwire._server.handlers.custom_losses import CUSTOM, loss_of
from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.handlers.model_creation import Plan, check_optimizer, new_model
from tinkerwire._server.handlers.submission import enqueue, queued, resend
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response, invalid
from tinkerwire._server.sessions.models import TrainedModel
from tinkerwire._server.state import State
from tinkerwire_generated.models import (
    CreateModelRequest,
    CreateModelResponse,
    ForwardBackwardOutput,
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


def create_model(state: State, request: Request) -> Response:
    """Create a model; the same model_seq_id of a session is the same model."""
    body: CreateModelRequest = request.body
    check_optimizer(body.optimizer_config)

    def build(model: TrainedModel) -> CreateModelResponse:
        model.build()
        return CreateModelResponse(model_id=model.model_id)

    def planned() -> Plan:
        return Plan(body.base_model, _settings(state, body), body.user_metadata)

    return new_model(state, request, body.session_id, body.model_seq_id, planned, build)


def _settings(state: State, body: CreateModelRequest) -> LoraSettings:
    config = state.settings.catalogue.get(body.base_model)
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
    except EngineError as error:
        raise invalid("lora_config", str(error)) from None
    return settings


def get_info(state: State, request: Request) -> Response:
    """Describe a model."""
    body: GetInfoRequest = request.body
    run = state.models.get(body.model_id).run
    data = ModelData(arch=ARCHITECTURE, model_name=run.base_model, tokenizer_id=TOKENIZER)
    return Response(
        body=GetInfoResponse(
            model_data=data,
            model_id=run.run_id,
            is_lora=True,
            lora_rank=run.rank,
            model_name=run.base_model,
            type="get_info",
        )
    )


def unload_model(state: State, request: Request) -> Response:
    """Forget a model once what is queued on it is done."""
    body: UnloadModelRequest = request.body
    model = state.models.get(body.model_id)
    model.sequence.turns.flush()
    request_id = state.train(model, lambda: UnloadModelResponse(model_id=body.model_id, type="unload_model"))
    state.models.remove(body.model_id, 404, "it was unloaded")
    model.close(finish=True)
    return queued(request_id, model.model_id)


def forward(state: State, request: Request) -> Response:
    """Compute a loss."""
    return _loss(state, request)


def forward_backward(state: State, request: Request) -> Response:
    """Compute a loss and its gradients, or only the loss."""
    return _loss(state, request)


def _loss(state: State, request: Request) -> Response:
    model = state.models.get(request.body.model_id)
    earlier = resend(model, request)
    if earlier is not None:
        return queued(earlier, model.model_id)
    # The binary body of forward_backward may say forward_only.
    only_forward = isinstance(request.body, ForwardRequest)
    asked = request.body.forward_input if only_forward else request.body.forward_backward_input
    custom = loss_of(state.sessions.get(model.session_id), asked.loss_fn_config) if asked.loss_fn == CUSTOM else None

    def work() -> ForwardBackwardOutput:
        if custom is not None:
            return conversion.output(
                train(model.engine, custom, conversion.examples(asked.data), backward=not only_forward)
            )
        compute = model.engine.forward if only_forward else model.engine.forward_backward
        return conversion.output(compute(conversion.examples(asked.data), asked.loss_fn, asked.loss_fn_config))

    return enqueue(state, request, model, work)


def optim_step(state: State, request: Request) -> Response:
    """Update the weights."""
    body: OptimStepRequest = request.body
    model = state.models.get(body.model_id)
    earlier = resend(model, request)
    if earlier is not None:
        return queued(earlier, model.model_id)
    adam = body.adam_params
    if adam is None:
        other = body.optimizer_params
        told = "nothing" if other is None else repr(other.type)
        raise invalid("adam_params", f"this server trains by AdamW; give its settings, not {told}")

    def work() -> OptimStepResponse:
        metrics = model.engine.optim_step(
            learning_rate=adam.learning_rate,
            beta1=adam.beta1,
            beta2=adam.beta2,
            eps=adam.eps,
            weight_decay=adam.weight_decay,
            grad_clip_norm=adam.grad_clip_norm,
        )
        return OptimStepResponse(metrics=conversion.finite(metrics))

    return enqueue(state, request, model, work)


HANDLERS: Mapping[str, Handler] = {
    "create_model": create_model,
    "get_info": get_info,
    "unload_model": unload_model,
    "forward": forward,
    "forward_backward": forward_backward,
    "optim_step": optim_step,
}
