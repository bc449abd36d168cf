"""Models and the operations that train them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tinkerwire._server import conversion
from tinkerwire._server.custom_loss.evaluation import compute_loss
from tinkerwire._server.engine import EngineError, LoraSettings
from tinkerwire._server.handlers.custom_losses import CUSTOM, find_loss
from tinkerwire._server.handlers.expected_tokens import check_expected_tokens
from tinkerwire._server.handlers.model_creation import ModelPlan, check_optimizer, enqueue_creation
from tinkerwire._server.handlers.submission import enqueue, find_accepted, queue_response
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response, field_error
from tinkerwire._server.sessions.models import Effect, TrainedModel
from tinkerwire._server.state import State
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


def create_model(state: State, request: Request) -> Response:
    """Create a model, once for each model_seq_id of a session."""
    body: CreateModelRequest = request.body
    check_optimizer(body.optimizer_config)

    def build(model: TrainedModel) -> CreateModelResponse:
        model.build()
        return CreateModelResponse(model_id=model.model_id)

    def make_plan() -> ModelPlan:
        return ModelPlan(body.base_model, _lora_settings(state, body), body.user_metadata)

    return enqueue_creation(state, request, body.session_id, body.model_seq_id, make_plan, build)


def _lora_settings(state: State, body: CreateModelRequest) -> LoraSettings:
    config = state.settings.catalogue.get(body.base_model)
    lora = body.lora_config
    seed = lora.seed if lora is not None else None
    if seed is None:
        seed = state.derive_seed("adapter", body.model_seq_id)
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
        raise field_error("lora_config", str(error)) from None
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
    """Remove a model after all work that is queued on it."""
    body: UnloadModelRequest = request.body
    model = state.models.get(body.model_id)
    model.seq_ids.reorder_buffer.flush()
    request_id = state.enqueue_training(
        model, lambda: UnloadModelResponse(model_id=body.model_id, type="unload_model"), effect=Effect.REMOVED
    )
    state.models.remove(body.model_id, 404, "it was unloaded")
    state.journal.after_commit(lambda: model.close(finish=True))
    return queue_response(request_id, model.model_id)


def forward(state: State, request: Request) -> Response:
    """Compute a loss."""
    return _enqueue_loss(state, request)


def forward_backward(state: State, request: Request) -> Response:
    """Compute a loss and its gradients, or only the loss."""
    return _enqueue_loss(state, request)


def _enqueue_loss(state: State, request: Request) -> Response:
    model = state.models.get(request.body.model_id)
    accepted_id = find_accepted(model, request)
    if accepted_id is not None:
        return queue_response(accepted_id, model.model_id)
    # The protobuf body of forward_backward may set forward_only.
    forward_only = isinstance(request.body, ForwardRequest)
    loss_input = request.body.forward_input if forward_only else request.body.forward_backward_input
    for index, datum in enumerate(loss_input.data):
        check_expected_tokens(state, f"datum {index}", datum.model_input)
    if loss_input.loss_fn != CUSTOM:
        effect = Effect.NONE if forward_only else Effect.REPLAYED
        return enqueue(state, request, model, loss_work(model, request.body), effect=effect)
    session = state.sessions.get(model.session_id)
    custom = find_loss(state, session, loss_input.loss_fn_config)

    def work() -> ForwardBackwardOutput:
        examples = conversion.to_examples(loss_input.data, model.config)
        return conversion.to_output(compute_loss(model.engine, custom, examples, backward=not forward_only))

    # The sums of torch may depend on the number of its threads, so that they cannot be replayed exactly.
    return enqueue(state, request, model, work, effect=Effect.NONE if forward_only else Effect.RECORDED)


def loss_work(
    model: TrainedModel, body: ForwardRequest | ForwardBackwardRequest
) -> Callable[[], ForwardBackwardOutput]:
    """Return the work of a request with one of the server's own losses."""
    forward_only = isinstance(body, ForwardRequest)
    loss_input = body.forward_input if isinstance(body, ForwardRequest) else body.forward_backward_input

    # Only custom losses have settings that are texts.
    config = cast("dict[str, float] | None", loss_input.loss_fn_config)

    def work() -> ForwardBackwardOutput:
        examples = conversion.to_examples(loss_input.data, model.config)
        compute = model.engine.forward if forward_only else model.engine.forward_backward
        return conversion.to_output(compute(examples, loss_input.loss_fn, config))

    return work


def optim_step(state: State, request: Request) -> Response:
    """Update the weights."""
    body: OptimStepRequest = request.body
    model = state.models.get(body.model_id)
    accepted_id = find_accepted(model, request)
    if accepted_id is not None:
        return queue_response(accepted_id, model.model_id)
    return enqueue(state, request, model, optim_work(model, body), effect=Effect.REPLAYED)


def optim_work(model: TrainedModel, body: OptimStepRequest) -> Callable[[], OptimStepResponse]:
    """Return the work of an optimizer step.

    Raises:
        HttpError: 422 for another optimizer than AdamW.
    """
    adam = body.adam_params
    if adam is None:
        optimizer = body.optimizer_params
        name = "no settings" if optimizer is None else repr(optimizer.type)
        raise field_error("adam_params", f"this server only supports AdamW; pass adam_params, got {name}")

    def work() -> OptimStepResponse:
        metrics = model.engine.optim_step(
            learning_rate=adam.learning_rate,
            beta1=adam.beta1,
            beta2=adam.beta2,
            eps=adam.eps,
            weight_decay=adam.weight_decay,
            grad_clip_norm=adam.grad_clip_norm,
        )
        return OptimStepResponse(metrics=conversion.require_finite(metrics))

    return work
