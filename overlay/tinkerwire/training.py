"""Training one model: forward, backward, optimizer steps, saving and loading, in the order of the calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any

from typing_extensions import Self

from tinkerwire_base.call import Call
from tinkerwire_generated.api.training import create_model, forward, forward_backward, get_info, optim_step
from tinkerwire_generated.api.weights import load_weights, save_weights, save_weights_for_sampler
from tinkerwire_generated.models import (
    AdamOptimizerConfig,
    AdamParams,
    CreateModelRequest,
    CreateModelResponse,
    Datum,
    DimuonParams,
    ForwardBackwardInput,
    ForwardBackwardOutput,
    ForwardBackwardRequest,
    ForwardRequest,
    GetInfoRequest,
    GetInfoResponse,
    LoadWeightsRequest,
    LoadWeightsResponse,
    LoraConfig,
    LossFnType,
    OptimizerConfig,
    OptimParams,
    OptimParamsBase,
    OptimStepRequest,
    OptimStepResponse,
    SamplingClientKind,
    SaveWeightsForSamplerRequest,
    SaveWeightsForSamplerResponse,
    SaveWeightsForSamplerResponseInternal,
    SaveWeightsRequest,
    SaveWeightsResponse,
    UntypedAPIFuture,
)

from .backpressure import Traffic
from .chunking import ChunkLimits
from .futures import APIFuture
from .operations import CallOf, Operations
from .retry import RetryConfig
from .sampling import SamplingClient
from .session import Session
from .weights import refuse_path_of_kind, source_of


class TrainingClient:
    """One model being trained.

    Every method sends its request at once, in the order of the calls, and returns a future; waiting is never
    needed between operations. A ServiceClient makes these clients; the model's creation is the first operation,
    and awaiting the client waits for it.
    """

    def __init__(
        self, session: Session, chunk_limits: ChunkLimits, create: Callable[[Operations], Awaitable[str]]
    ) -> None:
        self._session = session
        self._connection = session.connection
        self._operations = Operations(session.connection, chunk_limits, create)

    @classmethod
    def _create(
        cls,
        session: Session,
        limits: ChunkLimits,
        *,
        base_model: str,
        rank: int,
        seed: int | None,
        train_mlp: bool,
        train_attn: bool,
        train_unembed: bool,
        user_metadata: Mapping[str, str] | None,
        optimizer: OptimizerConfig | None,
    ) -> Self:
        if not base_model:
            raise ValueError("base_model: give the name of a model; get_server_capabilities() lists them")
        lora = LoraConfig(rank=rank, seed=seed, train_unembed=train_unembed, train_mlp=train_mlp, train_attn=train_attn)
        if rank < 1:
            raise ValueError(f"rank: {rank} is below 1")
        if not (train_mlp or train_attn or train_unembed):
            raise ValueError("nothing to train: set at least one of train_mlp, train_attn, train_unembed")

        async def create(operations: Operations) -> str:
            return await _new_model(session, operations, base_model, lora, user_metadata, optimizer)

        return cls(session, limits, create)

    @classmethod
    def _from_state(
        cls,
        session: Session,
        limits: ChunkLimits,
        path: str,
        *,
        base_model: str | None,
        user_metadata: Mapping[str, str] | None,
        weights_access_token: str | None,
        optimizer: OptimizerConfig | None,
        with_optimizer_state: bool,
    ) -> Self:
        refuse_path_of_kind("sampler", path, "load training state")

        async def create(operations: Operations) -> str:
            if (await session.connection.dialect()).load_creates:
                request = LoadWeightsRequest(
                    path=path,
                    session_id=await session.id(),
                    model_seq_id=session.next_model_seq_id(),
                    base_model=base_model,
                    user_metadata=dict(user_metadata) if user_metadata else None,
                    optimizer=with_optimizer_state,
                    optimizer_config=optimizer,
                    weights_access_token=weights_access_token,
                )
                return await _loaded_model(session, operations, request)
            source = await source_of(session.connection, path)
            lora = LoraConfig(
                rank=source.lora_rank,
                train_unembed=source.train_unembed,
                train_mlp=source.train_mlp,
                train_attn=source.train_attn,
            )
            metadata = user_metadata
            if source.user_metadata is not None:
                metadata = {**source.user_metadata, **(user_metadata or {})}
            model_id = await _new_model(session, operations, base_model or source.base_model, lora, metadata, optimizer)
            load = _load_call(session, path, with_optimizer_state, weights_access_token)
            await operations.run_now(model_id, "LoadWeights", load, LoadWeightsResponse)
            return model_id

        return cls(session, limits, create)

    # --- the client as something that is being created -----------------------------------------------------------

    def __await__(self) -> Generator[Any, None, Self]:
        yield from self._operations.creation.__await__()
        return self

    def result(self, timeout: float | None = None) -> Self:
        """Wait for the model's creation, at most ``timeout`` seconds; the client itself."""
        self._operations.creation.result(timeout)
        return self

    async def result_async(self, timeout: float | None = None) -> Self:
        """:meth:`result` for coroutines."""
        await self._operations.creation.result_async(timeout)
        return self

    @property
    def model_id(self) -> str:
        """The model's id; waits for its creation."""
        return self._operations.creation.result()

    # --- training --------------------------------------------------------------------------------------------------

    def forward(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float | str] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Compute the loss without gradients.

        Args:
            data: the batch; a large one is sent in several requests whose results are combined.
            loss_fn: name of the loss.
            loss_fn_config: settings of the loss.

        Raises:
            ValueError: no data; nothing was sent.
        """

        def call(model_id: str, seq_id: int, part: ForwardBackwardInput) -> Call[UntypedAPIFuture]:
            return forward(body=ForwardRequest(forward_input=part, model_id=model_id, seq_id=seq_id))

        return self._operations.start_batch("Forward", call, data, loss_fn, loss_fn_config)

    async def forward_async(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float | str] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """:meth:`forward`; the future comes at once."""
        return self.forward(data, loss_fn, loss_fn_config)

    def forward_backward(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float | str] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Compute the loss and add its gradients to those of the model; arguments and errors as for forward."""

        def call(model_id: str, seq_id: int, part: ForwardBackwardInput) -> Call[UntypedAPIFuture]:
            body = ForwardBackwardRequest(forward_backward_input=part, model_id=model_id, seq_id=seq_id)
            return forward_backward(body=body)

        return self._operations.start_batch("ForwardBackward", call, data, loss_fn, loss_fn_config)

    async def forward_backward_async(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float | str] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """:meth:`forward_backward`; the future comes at once."""
        return self.forward_backward(data, loss_fn, loss_fn_config)

    def optim_step(
        self, optim_params: OptimParams | None = None, *, adam_params: AdamParams | None = None
    ) -> APIFuture[OptimStepResponse]:
        """Take one optimizer step with the gradients gathered so far, and clear them.

        Args:
            optim_params: settings of the model's optimizer; others than AdamParams exist in wire 0.29.1 and later.
            adam_params: the same, by its older name.

        Raises:
            TypeError, ValueError: neither or both given, or something else than settings; nothing was sent.
        """
        if optim_params is not None and adam_params is not None:
            raise ValueError("optim_params and adam_params are the same thing; give one of them")
        given = adam_params if optim_params is None else optim_params
        if not isinstance(given, AdamParams | DimuonParams | OptimParamsBase):
            raise TypeError(f"optim_params: expected AdamParams or those of another optimizer, got {given!r:.100}")
        settings: dict[str, Any] = (
            {"adam_params": given} if isinstance(given, AdamParams) else {"optimizer_params": given}
        )

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            return optim_step(body=OptimStepRequest(**settings, model_id=model_id, seq_id=seq_id))

        return self._operations.start("OptimStep", call, OptimStepResponse)

    async def optim_step_async(
        self, optim_params: OptimParams | None = None, *, adam_params: AdamParams | None = None
    ) -> APIFuture[OptimStepResponse]:
        """:meth:`optim_step`; the future comes at once."""
        return self.optim_step(optim_params, adam_params=adam_params)

    # --- weights ---------------------------------------------------------------------------------------------------

    def save_state(
        self,
        name: str,
        ttl_seconds: int | None = None,
        overwrite: bool = False,
        user_metadata: Mapping[str, str] | None = None,
    ) -> APIFuture[SaveWeightsResponse]:
        """Save weights and optimizer; the result has the path.

        Args:
            name: what to save them under.
            ttl_seconds: how long they are kept; None: for good.
            overwrite: take the place of what is saved under that name; wire 0.20.0 and later.
            user_metadata: kept with them; wire 0.27.2 and later.
        """

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            body = SaveWeightsRequest(
                model_id=model_id,
                path=name,
                seq_id=seq_id,
                ttl_seconds=ttl_seconds,
                overwrite=overwrite,
                user_metadata=dict(user_metadata) if user_metadata else None,
            )
            return save_weights(body=body)

        return self._operations.start("SaveWeights", call, SaveWeightsResponse)

    async def save_state_async(self, name: str, *args: Any, **kwargs: Any) -> APIFuture[SaveWeightsResponse]:
        """:meth:`save_state`; the future comes at once."""
        return self.save_state(name, *args, **kwargs)

    def load_state(self, path: str, weights_access_token: str | None = None) -> APIFuture[LoadWeightsResponse]:
        """Load weights saved by save_state; the optimizer starts afresh.

        Args:
            path: what save_state gave.
            weights_access_token: for weights that are not one's own; wire 0.18.2 and later.

        Raises:
            ValueError: a path of sampler weights; nothing was sent.
        """
        return self._load(path, weights_access_token, optimizer=False)

    async def load_state_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """:meth:`load_state`; the future comes at once."""
        return self.load_state(path, weights_access_token)

    def load_state_with_optimizer(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """Load weights and optimizer saved by save_state; arguments and errors as for load_state."""
        return self._load(path, weights_access_token, optimizer=True)

    async def load_state_with_optimizer_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """:meth:`load_state_with_optimizer`; the future comes at once."""
        return self.load_state_with_optimizer(path, weights_access_token)

    def save_weights_for_sampler(
        self, name: str, ttl_seconds: int | None = None, user_metadata: Mapping[str, str] | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        """Save weights for sampling; arguments as for save_state, and the result has the path."""

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            body = SaveWeightsForSamplerRequest(
                model_id=model_id,
                path=name,
                seq_id=seq_id,
                ttl_seconds=ttl_seconds,
                user_metadata=dict(user_metadata) if user_metadata else None,
            )
            return save_weights_for_sampler(body=body)

        return self._operations.start("SaveWeightsForSampler", call, SaveWeightsForSamplerResponse)

    async def save_weights_for_sampler_async(
        self, name: str, ttl_seconds: int | None = None, user_metadata: Mapping[str, str] | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        """:meth:`save_weights_for_sampler`; the future comes at once."""
        return self.save_weights_for_sampler(name, ttl_seconds, user_metadata)

    def save_weights_and_get_sampling_client(
        self,
        name: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
        kind: SamplingClientKind = "snapshot",
    ) -> SamplingClient:
        """A client that samples from the weights as they are at this point of the sequence.

        Usable at once; ``await`` it, or call ``.result()``, to wait for it and see its error.

        Args:
            name: keep the weights under it, too; without, they last as long as the session.
            retry_config: the policy of the new client; this client's own when None.
            record_stability_info: let the server note how its samples differ from training; wire 0.26.2 and later.
            kind: ``inflight``: the samples follow the weights as they are trained; wire 0.38.0 and later.
        """

        async def saved() -> SaveWeightsForSamplerResponseInternal:
            number = None if name else self._session.next_sampling_session_seq_id()

            def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
                body = SaveWeightsForSamplerRequest(
                    model_id=model_id, path=name, sampling_session_seq_id=number, seq_id=seq_id, kind=kind
                )
                return save_weights_for_sampler(body=body)

            return await self._operations.run("SaveWeightsForSampler", call, SaveWeightsForSamplerResponseInternal)

        return SamplingClient._from_saved(
            self._session, saved, retry_config, record_stability_info=record_stability_info
        )

    async def save_weights_and_get_sampling_client_async(
        self,
        name: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
        kind: SamplingClientKind = "snapshot",
    ) -> SamplingClient:
        """:meth:`save_weights_and_get_sampling_client`, awaited."""
        return await self.save_weights_and_get_sampling_client(name, retry_config, record_stability_info, kind)

    def create_sampling_client(
        self, model_path: str, retry_config: RetryConfig | None = None, record_stability_info: bool = False
    ) -> SamplingClient:
        """A client that samples from saved sampler weights; see ServiceClient.create_sampling_client."""
        return SamplingClient._create(
            self._session, model_path, None, retry_config, record_stability_info=record_stability_info
        )

    async def create_sampling_client_async(
        self, model_path: str, retry_config: RetryConfig | None = None, record_stability_info: bool = False
    ) -> SamplingClient:
        """:meth:`create_sampling_client`, awaited."""
        return await self.create_sampling_client(model_path, retry_config, record_stability_info)

    # --- facts -----------------------------------------------------------------------------------------------------

    def get_info(self) -> GetInfoResponse:
        """What the server knows of the model."""
        return self._info().result()

    async def get_info_async(self) -> GetInfoResponse:
        """:meth:`get_info`, awaited."""
        return await self._info()

    def _info(self) -> APIFuture[GetInfoResponse]:
        async def ask() -> GetInfoResponse:
            model_id = await self._operations.creation.watch()
            return await self._connection.call(get_info(body=GetInfoRequest(model_id=model_id)), Traffic.TRAINING)

        return self._connection.start(ask())

    def _load(self, path: str, access_token: str | None, *, optimizer: bool) -> APIFuture[LoadWeightsResponse]:
        refuse_path_of_kind("sampler", path, "load training state")
        call = _load_call(self._session, path, optimizer, access_token)
        return self._operations.start("LoadWeights", call, LoadWeightsResponse)


async def _new_model(
    session: Session,
    operations: Operations,
    base_model: str,
    lora: LoraConfig,
    user_metadata: Mapping[str, Any] | None,
    optimizer: OptimizerConfig | None,
) -> str:
    number = session.next_model_seq_id()
    request = CreateModelRequest(
        session_id=await session.id(),
        model_seq_id=number,
        base_model=base_model,
        user_metadata=None if user_metadata is None else dict(user_metadata),
        lora_config=lora,
        optimizer_config=optimizer or AdamOptimizerConfig(),
    )
    asked = await session.connection.call(create_model(body=request), Traffic.TRAINING)
    return (await operations.poll(asked, "CreateModel", CreateModelResponse)).model_id


async def _loaded_model(session: Session, operations: Operations, request: LoadWeightsRequest) -> str:
    asked = await session.connection.call(load_weights(body=request), Traffic.TRAINING)
    loaded = await operations.poll(asked, "LoadWeights", LoadWeightsResponse)
    # Servers need not say how it is called: that goes without saying.
    return loaded.model_id or f"{request.session_id}:train:{request.model_seq_id}"


def _load_call(session: Session, path: str, optimizer: bool, access_token: str | None) -> CallOf:
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
