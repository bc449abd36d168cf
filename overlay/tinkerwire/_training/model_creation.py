"""How a model comes to be: new, or from saved weights, in one call or in two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tinkerwire_base.call import Call
from tinkerwire_base.errors import APIStatusError, TinkerError
from tinkerwire_base.validators import require_optional_metadata, require_optional_text, require_text, validator_of
from tinkerwire_generated.api.training import create_model
from tinkerwire_generated.api.weights import load_weights
from tinkerwire_generated.models import (
    AdamOptimizerConfig,
    CreateModelRequest,
    CreateModelResponse,
    LoadWeightsRequest,
    LoadWeightsResponse,
    LoraConfig,
    OptimizerConfig,
    UntypedAPIFuture,
)

from .._checkpoints.access_token import validate_access_token
from .._checkpoints.paths import reject_path_kind
from .._checkpoints.weights_info import WeightsInfo, fetch_weights_info, find_base_model
from .._futures.operation_record import current
from .._session.session import Session
from .._transport.backpressure import Traffic
from .._wire.server_futures import Submission
from .operations import Operations
from .submission_outcome import is_rejection
from .submitter import RequestBuilder

REFUSED_LOADS = frozenset({400, 404, 405, 422, 501})
"""Statuses of servers that create no model by load_weights."""
ModelFactory = Callable[[Operations], Awaitable[str]]
"""Makes a model, and gives its id."""


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
    optimizer: OptimizerConfig | None,
) -> ModelFactory:
    """A new adapter. ValueError for one that cannot be made."""
    require_text("base_model", base_model)
    require_optional_metadata("user_metadata", user_metadata)
    _check_optimizer(optimizer)
    if not base_model:
        raise ValueError("base_model: give the name of a model; get_server_capabilities() lists them")
    lora = LoraConfig(rank=rank, seed=seed, train_unembed=train_unembed, train_mlp=train_mlp, train_attn=train_attn)
    if rank < 1:
        raise ValueError(f"rank: {rank} is below 1")
    if not (train_mlp or train_attn or train_unembed):
        raise ValueError("nothing to train: set at least one of train_mlp, train_attn, train_unembed")

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
    optimizer: OptimizerConfig | None,
    with_optimizer_state: bool,
) -> ModelFactory:
    """A new adapter with the weights at a path. ValueError for a path of sampler weights, TypeError for no model."""
    require_optional_metadata("user_metadata", user_metadata)
    reject_path_kind("sampler", path, "load training state")
    validate_access_token(weights_access_token)
    _check_optimizer(optimizer)
    if base_model is not None and not isinstance(base_model, str):
        # Older releases of the official SDK have user_metadata in this place.
        raise TypeError(f"base_model: expected a str, got {type(base_model).__name__}; say user_metadata= for metadata")
    require_optional_text("base_model", base_model)
    if base_model == "":
        raise ValueError("base_model: give the name of a model, or None to have the server asked for it")

    async def create(operations: Operations) -> str:
        dialect = await session.connection.dialect()
        if not dialect.load_creates:
            return await create_and_load(operations, await fetch_weights_info(session.connection, path))
        request = LoadWeightsRequest(
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
            asked = await _submit_load(session, request)
        except RefusedLoadError as refused:
            if not dialect.config.create_model_via_load_weights:
                raise refused.error from refused.error.__cause__
            refusal = refused.error
        else:
            return await _loaded_model(session, operations, request, asked)
        try:
            source = await fetch_weights_info(session.connection, path)
        except APIStatusError:
            # The refusal was about the path.
            raise refusal from refusal.__cause__
        # The number is free again, since the server has created nothing under it.
        model_id = await create_and_load(operations, source, request.model_seq_id)
        session.connection.dialects.learn_separate_load()
        return model_id

    async def create_and_load(operations: Operations, source: WeightsInfo, number: int | None = None) -> str:
        lora = LoraConfig(
            rank=source.lora_rank,
            train_unembed=source.train_unembed,
            train_mlp=source.train_mlp,
            train_attn=source.train_attn,
        )
        metadata = user_metadata
        if source.user_metadata is not None:
            metadata = {**source.user_metadata, **(user_metadata or {})}
        base = base_model or source.base_model
        if base is None:
            raise TinkerError(f"{path}: the server does not say of which base model these weights are; give base_model")
        model_id = await _new_model(session, operations, number, base, lora, metadata, optimizer)
        load = load_call(session, path, with_optimizer_state, weights_access_token)
        created = current().created_model(model_id)
        await operations.run_in_creation(model_id, "LoadWeights", load, LoadWeightsResponse)
        current().drop(created)
        return model_id

    return create


def load_call(session: Session, path: str, optimizer: bool, access_token: str | None) -> RequestBuilder:
    """The call that loads the weights at a path into a model that is there."""

    def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
        dialect = session.connection.known_dialect
        # Wires without the flag load weights alone: saying "no optimizer" to them is saying nothing.
        said = optimizer or dialect is None or dialect.may_have_field("LoadWeightsRequest", "optimizer")
        body = LoadWeightsRequest(
            model_id=model_id,
            path=path,
            optimizer=optimizer if said else None,
            seq_id=seq_id,
            weights_access_token=access_token,
        )
        return load_weights(body=body)

    return call


def _check_optimizer(optimizer: OptimizerConfig | None) -> None:
    if optimizer is not None:
        validator_of(OptimizerConfig)("optimizer", optimizer)


async def _new_model(
    session: Session,
    operations: Operations,
    number: int | None,
    base_model: str,
    lora: LoraConfig,
    user_metadata: Mapping[str, Any] | None,
    optimizer: OptimizerConfig | None,
) -> str:
    if number is None:
        number = session.next_model_seq_id()
    request = CreateModelRequest(
        session_id=await session.id(),
        model_seq_id=number,
        base_model=base_model,
        user_metadata=None if user_metadata is None else dict(user_metadata),
        lora_config=lora,
        optimizer_config=AdamOptimizerConfig() if optimizer is None else optimizer,
    )
    asked = await session.connection.submit(create_model(body=request), Traffic.TRAINING)
    model_id = (await operations.poll(asked, "CreateModel", CreateModelResponse)).model_id
    session.connection.known_models.base_models[model_id] = base_model
    return model_id


class RefusedLoadError(Exception):
    """Says that a server certainly created no model by load_weights, with its error."""

    def __init__(self, error: APIStatusError) -> None:
        super().__init__(error)
        self.error = error


async def _submit_load(session: Session, request: LoadWeightsRequest) -> Submission:
    connection, is_certain = session.connection, True

    def note(error: TinkerError, _: float) -> None:
        nonlocal is_certain
        is_not_implemented = isinstance(error, APIStatusError) and error.status_code in REFUSED_LOADS
        is_certain = is_certain and (is_rejection(error) or is_not_implemented)

    call = load_weights(body=request)
    encoded = connection.codec.encode(call, await connection.dialect())
    read = connection.codec.submission_reader(call, encoded)
    try:
        return await connection.send(encoded, read, Traffic.TRAINING, on_retry=note)
    except APIStatusError as error:
        if is_certain and error.status_code in REFUSED_LOADS:
            raise RefusedLoadError(error) from None
        raise


async def _loaded_model(
    session: Session, operations: Operations, request: LoadWeightsRequest, asked: Submission
) -> str:
    loaded = await operations.poll(asked, "LoadWeights", LoadWeightsResponse)
    # Servers need not say how it is called: that goes without saying.
    model_id = loaded.model_id or f"{request.session_id}:train:{request.model_seq_id}"
    base_model = request.base_model or find_base_model(session.connection, request.path)
    if base_model is not None:
        session.connection.known_models.base_models[model_id] = base_model
    return model_id
