"""Creation of models: new ones, and from saved weights in one call or in two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tinkerwire_base.call import Call
from tinkerwire_base.errors import APIStatusError, TinkerError
from tinkerwire_base.validators import require_optional_metadata, require_optional_text, require_text, validator_of
from tinkerwire_generated import models
from tinkerwire_generated.api.training import create_model
from tinkerwire_generated.api.weights import load_weights

from .._checkpoints.access_token import validate_access_token
from .._checkpoints.paths import reject_path_kind
from .._checkpoints.weights_info import WeightsInfo, fetch_weights_info, find_base_model
from .._futures.operation_record import current_operation
from .._session.session import Session
from .._transport.backpressure import Traffic
from .._wire.server_futures import Submission
from .operations import Operations
from .submission_outcome import is_rejection
from .submitter import RequestBuilder

NO_CREATION_STATUSES = frozenset({400, 404, 405, 422, 501})
"""Statuses of load_weights on servers that cannot create a model with it."""
ModelFactory = Callable[[Operations], Awaitable[str]]
"""Creates a model and returns its id."""


def new_model_factory(
    session: Session,
    *,
    base_model: str,
    rank: int,
    seed: int | None,
    train_mlp: bool,
    train_attn: bool,
    train_unembed: bool,
    user_metadata: Mapping[str, str] | None,
    optimizer: models.OptimizerConfig | None,
) -> ModelFactory:
    """Return the function that creates a new adapter.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the base model or the rank is invalid, or no layer gets an adapter.
    """
    require_text("base_model", base_model)
    require_optional_metadata("user_metadata", user_metadata)
    _check_optimizer(optimizer)
    if not base_model:
        raise ValueError(
            "base_model must name a model, got an empty string; get_server_capabilities() lists the models"
        )
    lora = models.LoraConfig(
        rank=rank, seed=seed, train_unembed=train_unembed, train_mlp=train_mlp, train_attn=train_attn
    )
    if rank < 1:
        raise ValueError(f"rank must be at least 1, got {rank}")
    if not (train_mlp or train_attn or train_unembed):
        raise ValueError("at least one of train_mlp, train_attn and train_unembed must be True, got False for all")

    async def create(operations: Operations) -> str:
        return await _new_model(session, operations, None, base_model, lora, user_metadata, optimizer)

    return create


def model_from_state_factory(
    session: Session,
    path: str,
    *,
    base_model: str | None,
    user_metadata: Mapping[str, str] | None,
    weights_access_token: str | None,
    optimizer: models.OptimizerConfig | None,
    with_optimizer_state: bool,
) -> ModelFactory:
    """Return the function that creates an adapter with the weights at a path.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the path is of sampler weights, or the base model is empty.
    """
    require_optional_metadata("user_metadata", user_metadata)
    reject_path_kind("sampler", path, "load training state")
    validate_access_token(weights_access_token)
    _check_optimizer(optimizer)
    if base_model is not None and not isinstance(base_model, str):
        # Older releases of the official SDK have user_metadata at this position.
        raise TypeError(f"base_model: expected a str, got {type(base_model).__name__}; pass metadata as user_metadata=")
    require_optional_text("base_model", base_model)
    if base_model == "":
        raise ValueError("base_model must name a model, got an empty string; pass None to look it up on the server")

    async def create(operations: Operations) -> str:
        dialect = await session.connection.dialect()
        if not dialect.creates_model_on_load:
            return await create_and_load(operations, await fetch_weights_info(session.connection, path))
        request = models.LoadWeightsRequest(
            path=path,
            session_id=await session.id(),
            model_seq_id=session.next_model_seq_id(),
            base_model=base_model,
            user_metadata=None if user_metadata is None else dict(user_metadata),
            optimizer=with_optimizer_state,
            optimizer_config=optimizer,
            weights_access_token=weights_access_token,
        )
        try:
            submission = await _submit_load(session, request)
        except LoadRejectedError as rejection:
            if not dialect.config.create_model_via_load_weights:
                raise rejection.error from rejection.error.__cause__
            load_error = rejection.error
        else:
            return await _loaded_model(session, operations, request, submission)
        try:
            info = await fetch_weights_info(session.connection, path)
        except APIStatusError:
            # The server rejected the path.
            raise load_error from load_error.__cause__
        # The number is free, because the server has created nothing under it.
        model_id = await create_and_load(operations, info, request.model_seq_id)
        session.connection.dialects.learn_separate_load()
        return model_id

    async def create_and_load(operations: Operations, info: WeightsInfo, number: int | None = None) -> str:
        lora = models.LoraConfig(
            rank=info.lora_rank,
            train_unembed=info.train_unembed,
            train_mlp=info.train_mlp,
            train_attn=info.train_attn,
        )
        metadata = user_metadata
        if info.user_metadata is not None:
            metadata = {**info.user_metadata, **(user_metadata or {})}
        base = base_model or info.base_model
        if base is None:
            raise TinkerError(f"{path}: the server does not report the base model of these weights; pass base_model")
        model_id = await _new_model(session, operations, number, base, lora, metadata, optimizer)
        load = load_call(session, path, with_optimizer_state, weights_access_token)
        created = current_operation().add_created_model(model_id)
        await operations.run_in_creation(model_id, "LoadWeights", load, models.LoadWeightsResponse)
        current_operation().remove_build(created)
        return model_id

    return create


def load_call(session: Session, path: str, optimizer: bool, access_token: str | None) -> RequestBuilder:
    """Return the builder of the request that loads the weights at a path into an existing model."""

    def call(model_id: str, seq_id: int) -> Call[models.UntypedAPIFuture]:
        dialect = session.connection.known_dialect
        # Wire versions without the field load only weights: omitting it means the same as False.
        has_field = optimizer or dialect is None or dialect.may_have_field("LoadWeightsRequest", "optimizer")
        body = models.LoadWeightsRequest(
            model_id=model_id,
            path=path,
            optimizer=optimizer if has_field else None,
            seq_id=seq_id,
            weights_access_token=access_token,
        )
        return load_weights(body=body)

    return call


def _check_optimizer(optimizer: models.OptimizerConfig | None) -> None:
    if optimizer is not None:
        validator_of(models.OptimizerConfig)("optimizer", optimizer)


async def _new_model(
    session: Session,
    operations: Operations,
    number: int | None,
    base_model: str,
    lora: models.LoraConfig,
    user_metadata: Mapping[str, Any] | None,
    optimizer: models.OptimizerConfig | None,
) -> str:
    if number is None:
        number = session.next_model_seq_id()
    request = models.CreateModelRequest(
        session_id=await session.id(),
        model_seq_id=number,
        base_model=base_model,
        user_metadata=None if user_metadata is None else dict(user_metadata),
        lora_config=lora,
        optimizer_config=models.AdamOptimizerConfig() if optimizer is None else optimizer,
    )
    submission = await session.connection.submit(create_model(body=request), Traffic.TRAINING)
    model_id = (await operations.poll(submission, "CreateModel", models.CreateModelResponse)).model_id
    session.connection.known_models.base_models[model_id] = base_model
    return model_id


class LoadRejectedError(Exception):
    """Proof that a server created no model by load_weights, with its error."""

    def __init__(self, error: APIStatusError) -> None:
        super().__init__(error)
        self.error = error


async def _submit_load(session: Session, request: models.LoadWeightsRequest) -> Submission:
    connection = session.connection
    retried: list[TinkerError] = []
    call = load_weights(body=request)
    encoded = connection.codec.encode(call, await connection.dialect())
    read = connection.codec.submission_reader(call, encoded)
    try:
        return await connection.send(
            encoded, read, Traffic.TRAINING, on_retry=lambda error, _wait_s: retried.append(error)
        )
    except APIStatusError as error:
        if all(map(_proves_no_creation, retried)) and error.status_code in NO_CREATION_STATUSES:
            raise LoadRejectedError(error) from None
        raise


def _proves_no_creation(error: TinkerError) -> bool:
    return is_rejection(error) or (isinstance(error, APIStatusError) and error.status_code in NO_CREATION_STATUSES)


async def _loaded_model(
    session: Session, operations: Operations, request: models.LoadWeightsRequest, submission: Submission
) -> str:
    loaded = await operations.poll(submission, "LoadWeights", models.LoadWeightsResponse)
    # The id is optional in the response; it follows from the session and the model_seq_id.
    model_id = loaded.model_id or f"{request.session_id}:train:{request.model_seq_id}"
    base_model = request.base_model or find_base_model(session.connection, request.path)
    if base_model is not None:
        session.connection.known_models.base_models[model_id] = base_model
    return model_id
