"""Training one model: forward, backward, optimizer steps, saving and loading, in the order of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from typing_extensions import Self

from tinkerwire_base.call import Call
from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.api.training import create_model, forward, forward_backward, get_info, optim_step
from tinkerwire_generated.api.weights import load_weights, save_weights, save_weights_for_sampler
from tinkerwire_generated.models import (
    AdamParams,
    CreateModelRequest,
    CreateModelResponse,
    Datum,
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
    OptimStepRequest,
    OptimStepResponse,
    SaveWeightsForSamplerRequest,
    SaveWeightsForSamplerResponse,
    SaveWeightsForSamplerResponseInternal,
    SaveWeightsRequest,
    SaveWeightsResponse,
    UntypedAPIFuture,
)

from .backpressure import Traffic
from .chunking import ChunkLimits, split
from .combining import combine
from .connection import Submission
from .futures import APIFuture
from .polling import Poll, Promise
from .retry import RetryConfig
from .sampling import SamplingClient
from .sequencing import Lane
from .session import Session
from .weights import refuse_path_of_kind, source_of

T = TypeVar("T")
CallOf = Callable[[str, int], Call[UntypedAPIFuture]]
"""Makes the call of an operation from the model's id and the operation's seq_id."""


class TrainingClient:
    """One model being trained.

    Every method sends its request at once, in the order of the calls, and returns a future; waiting is never
    needed between operations. A ServiceClient makes these clients; the model's creation is the first operation,
    and awaiting the client waits for it.
    """

    def __init__(self, session: Session, chunk_limits: ChunkLimits) -> None:
        self._session = session
        self._connection = session.connection
        self._limits = chunk_limits
        self._lane = Lane()
        self._model_id: str | None = None
        self._creation: APIFuture[str]
        self._creation_fault: TinkerError | None = None

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
    ) -> Self:
        if not base_model:
            raise ValueError("base_model: give the name of a model; get_server_capabilities() lists them")
        if rank < 1:
            raise ValueError(f"rank: {rank} is below 1")
        if not (train_mlp or train_attn or train_unembed):
            raise ValueError("nothing to train: set at least one of train_mlp, train_attn, train_unembed")
        lora = LoraConfig(rank=rank, seed=seed, train_unembed=train_unembed, train_mlp=train_mlp, train_attn=train_attn)
        client = cls(session, limits)
        client._start(lambda: client._new_model(base_model, lora, user_metadata))
        return client

    @classmethod
    def _from_state(
        cls,
        session: Session,
        limits: ChunkLimits,
        path: str,
        base_model: str | None,
        user_metadata: Mapping[str, str] | None,
        *,
        optimizer: bool,
    ) -> Self:
        refuse_path_of_kind("sampler", path, "load training state")
        client = cls(session, limits)

        async def create() -> str:
            source = await source_of(client._connection, path)
            lora = LoraConfig(
                rank=source.lora_rank,
                train_unembed=source.train_unembed,
                train_mlp=source.train_mlp,
                train_attn=source.train_attn,
            )
            metadata = {**source.user_metadata, **(user_metadata or {})}
            await client._new_model(base_model or source.base_model, lora, metadata)
            await client._load_now(path, optimizer)
            return client._model_id or ""

        client._start(create)
        return client

    # --- the client as something that is being created -----------------------------------------------------------

    def __await__(self) -> Generator[Any, None, Self]:
        yield from self._creation.__await__()
        return self

    def result(self, timeout: float | None = None) -> Self:
        """Wait for the model's creation, at most ``timeout`` seconds; the client itself."""
        self._creation.result(timeout)
        return self

    async def result_async(self, timeout: float | None = None) -> Self:
        """:meth:`result` for coroutines."""
        await self._creation.result_async(timeout)
        return self

    @property
    def model_id(self) -> str:
        """The model's id; waits for its creation."""
        return self._creation.result()

    # --- training --------------------------------------------------------------------------------------------------

    def forward(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float] | None = None
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

        return self._batch("Forward", call, data, loss_fn, loss_fn_config)

    async def forward_async(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """:meth:`forward`; the future comes at once."""
        return self.forward(data, loss_fn, loss_fn_config)

    def forward_backward(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Compute the loss and add its gradients to those of the model; arguments and errors as for forward."""

        def call(model_id: str, seq_id: int, part: ForwardBackwardInput) -> Call[UntypedAPIFuture]:
            body = ForwardBackwardRequest(forward_backward_input=part, model_id=model_id, seq_id=seq_id)
            return forward_backward(body=body)

        return self._batch("ForwardBackward", call, data, loss_fn, loss_fn_config)

    async def forward_backward_async(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """:meth:`forward_backward`; the future comes at once."""
        return self.forward_backward(data, loss_fn, loss_fn_config)

    def optim_step(self, adam_params: AdamParams) -> APIFuture[OptimStepResponse]:
        """Take one optimizer step with the gradients gathered so far, and clear them."""
        if not isinstance(adam_params, AdamParams):
            raise TypeError(f"adam_params: expected AdamParams, got {type(adam_params).__name__}")

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            return optim_step(body=OptimStepRequest(adam_params=adam_params, model_id=model_id, seq_id=seq_id))

        return self._operation("OptimStep", call, OptimStepResponse)

    async def optim_step_async(self, adam_params: AdamParams) -> APIFuture[OptimStepResponse]:
        """:meth:`optim_step`; the future comes at once."""
        return self.optim_step(adam_params)

    # --- weights ---------------------------------------------------------------------------------------------------

    def save_state(self, name: str, ttl_seconds: int | None = None) -> APIFuture[SaveWeightsResponse]:
        """Save weights and optimizer under ``name``, for ``ttl_seconds`` (None: for good); the result has the path."""

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            return save_weights(
                body=SaveWeightsRequest(model_id=model_id, path=name, seq_id=seq_id, ttl_seconds=ttl_seconds)
            )

        return self._operation("SaveWeights", call, SaveWeightsResponse)

    async def save_state_async(self, name: str, ttl_seconds: int | None = None) -> APIFuture[SaveWeightsResponse]:
        """:meth:`save_state`; the future comes at once."""
        return self.save_state(name, ttl_seconds)

    def load_state(self, path: str) -> APIFuture[LoadWeightsResponse]:
        """Load weights saved by save_state; the optimizer starts afresh.

        Raises:
            ValueError: a path of sampler weights; nothing was sent.
        """
        return self._load(path, optimizer=False)

    async def load_state_async(self, path: str) -> APIFuture[LoadWeightsResponse]:
        """:meth:`load_state`; the future comes at once."""
        return self.load_state(path)

    def load_state_with_optimizer(self, path: str) -> APIFuture[LoadWeightsResponse]:
        """Load weights and optimizer saved by save_state; errors as for load_state."""
        return self._load(path, optimizer=True)

    async def load_state_with_optimizer_async(self, path: str) -> APIFuture[LoadWeightsResponse]:
        """:meth:`load_state_with_optimizer`; the future comes at once."""
        return self.load_state_with_optimizer(path)

    def save_weights_for_sampler(
        self, name: str, ttl_seconds: int | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        """Save weights for sampling under ``name``, for ``ttl_seconds`` (None: for good); the result has the path."""

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            body = SaveWeightsForSamplerRequest(model_id=model_id, path=name, seq_id=seq_id, ttl_seconds=ttl_seconds)
            return save_weights_for_sampler(body=body)

        return self._operation("SaveWeightsForSampler", call, SaveWeightsForSamplerResponse)

    async def save_weights_for_sampler_async(
        self, name: str, ttl_seconds: int | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        """:meth:`save_weights_for_sampler`; the future comes at once."""
        return self.save_weights_for_sampler(name, ttl_seconds)

    def save_weights_and_get_sampling_client(
        self, name: str | None = None, retry_config: RetryConfig | None = None
    ) -> SamplingClient:
        """A client that samples from the weights as they are at this point of the sequence.

        With ``name`` the weights are also kept under it; without, they last as long as the session. Usable at
        once; ``await`` it, or call ``.result()``, to wait for it and see its error.
        """

        async def saved() -> SaveWeightsForSamplerResponseInternal:
            number = None if name else self._session.next_sampling_session_seq_id()

            def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
                body = SaveWeightsForSamplerRequest(
                    model_id=model_id, path=name, sampling_session_seq_id=number, seq_id=seq_id
                )
                return save_weights_for_sampler(body=body)

            return await self._operate("SaveWeightsForSampler", call, SaveWeightsForSamplerResponseInternal)

        return SamplingClient._from_saved(self._session, saved, retry_config)

    async def save_weights_and_get_sampling_client_async(
        self, name: str | None = None, retry_config: RetryConfig | None = None
    ) -> SamplingClient:
        """:meth:`save_weights_and_get_sampling_client`, awaited."""
        return await self.save_weights_and_get_sampling_client(name, retry_config)

    def create_sampling_client(self, model_path: str, retry_config: RetryConfig | None = None) -> SamplingClient:
        """A client that samples from saved sampler weights; see ServiceClient.create_sampling_client."""
        return SamplingClient._create(self._session, model_path, None, retry_config)

    async def create_sampling_client_async(
        self, model_path: str, retry_config: RetryConfig | None = None
    ) -> SamplingClient:
        """:meth:`create_sampling_client`, awaited."""
        return await self.create_sampling_client(model_path, retry_config)

    # --- facts -----------------------------------------------------------------------------------------------------

    def get_info(self) -> GetInfoResponse:
        """What the server knows of the model."""
        return self._info().result()

    async def get_info_async(self) -> GetInfoResponse:
        """:meth:`get_info`, awaited."""
        return await self._info()

    def _info(self) -> APIFuture[GetInfoResponse]:
        async def ask() -> GetInfoResponse:
            model_id = await asyncio.shield(asyncio.wrap_future(self._creation.future()))
            return await self._connection.call(get_info(body=GetInfoRequest(model_id=model_id)), Traffic.TRAINING)

        return APIFuture.start(ask())

    # --- the road of an operation: place in the line, submission, poll ----------------------------------------------

    def _start(self, create: Callable[[], Any]) -> None:
        async def work() -> str:
            async with self._lane.hold(self._lane.queue()):
                try:
                    await create()
                except TinkerError as fault:
                    self._creation_fault = fault
                    raise
            return self._ready()

        self._creation = APIFuture.start(work())

    async def _new_model(self, base_model: str, lora: LoraConfig, user_metadata: Mapping[str, Any] | None) -> None:
        number = self._session.next_model_seq_id()
        request = CreateModelRequest(
            session_id=await self._session.id(),
            model_seq_id=number,
            base_model=base_model,
            user_metadata=dict(user_metadata) if user_metadata else None,
            lora_config=lora,
        )
        asked = await self._connection.call(create_model(body=request), Traffic.TRAINING)
        created = await self._poll(asked, "CreateModel", CreateModelResponse)
        self._model_id = created.model_id

    def _ready(self) -> str:
        """The model's id once its creation is over. Raises TinkerError when that failed."""
        if self._model_id is None:
            why = self._creation_fault or "it was cancelled"
            raise TinkerError(f"the model of this client was not created: {why}") from self._creation_fault
        return self._model_id

    def _operation(self, kind: str, call: CallOf, result_type: type[T]) -> APIFuture[T]:
        return APIFuture.start(self._operate(kind, call, result_type))

    async def _operate(self, kind: str, call: CallOf, result_type: type[T]) -> T:
        async with self._lane.hold(self._lane.queue()):
            asked = await self._submit(self._ready(), call)
        return await self._poll(asked, kind, result_type)

    async def _submit(self, model_id: str, call: CallOf) -> UntypedAPIFuture:
        seq_id = self._lane.take_id()
        try:
            return await self._connection.call(call(model_id, seq_id), Traffic.TRAINING, submission=Submission())
        except BaseException as fault:
            self._lane.give_back(seq_id, fault)
            raise

    async def _poll(self, asked: UntypedAPIFuture, kind: str, result_type: type[T]) -> T:
        retry = self._connection.retry
        promise = Promise(
            request_id=asked.request_id,
            request_type=kind,
            result_type=result_type,
            traffic=Traffic.TRAINING_FUTURES,
            deadline_s=retry.progress_timeout,
        )
        return await Poll(self._connection, promise, retry).result()

    def _batch(
        self,
        kind: str,
        call: Callable[[str, int, ForwardBackwardInput], Call[UntypedAPIFuture]],
        data: Sequence[Datum],
        loss_fn: LossFnType,
        config: Mapping[str, float] | None,
    ) -> APIFuture[ForwardBackwardOutput]:
        parts = [
            ForwardBackwardInput(data=chunk, loss_fn=loss_fn, loss_fn_config=dict(config) if config else None)
            for chunk in split(_checked(data), self._limits)
        ]
        return APIFuture.start(self._run_batch(kind, call, parts))

    async def _run_batch(
        self,
        kind: str,
        call: Callable[[str, int, ForwardBackwardInput], Call[UntypedAPIFuture]],
        parts: list[ForwardBackwardInput],
    ) -> ForwardBackwardOutput:
        polls: list[asyncio.Task[ForwardBackwardOutput]] = []
        try:
            async with self._lane.hold(self._lane.queue()):
                model_id = self._ready()
                for part in parts:
                    asked = await self._submit(model_id, lambda m, s, part=part: call(m, s, part))  # type: ignore[misc]
                    polls.append(asyncio.create_task(self._poll(asked, kind, ForwardBackwardOutput)))
            return combine(await asyncio.gather(*polls))
        finally:
            for poll in polls:
                poll.cancel()

    def _load(self, path: str, *, optimizer: bool) -> APIFuture[LoadWeightsResponse]:
        refuse_path_of_kind("sampler", path, "load training state")
        return self._operation("LoadWeights", self._load_call(path, optimizer), LoadWeightsResponse)

    async def _load_now(self, path: str, optimizer: bool) -> None:
        asked = await self._submit(self._ready(), self._load_call(path, optimizer))
        await self._poll(asked, "LoadWeights", LoadWeightsResponse)

    def _load_call(self, path: str, optimizer: bool) -> CallOf:
        # Wires without the flag load weights alone: saying "no optimizer" to them is saying nothing.
        said = optimizer or self._connection.has_field("LoadWeightsRequest", "optimizer")

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            flag = optimizer if said else None
            return load_weights(body=LoadWeightsRequest(model_id=model_id, path=path, optimizer=flag, seq_id=seq_id))

        return call


def _checked(data: Sequence[Datum]) -> Sequence[Datum]:
    if not data:
        raise ValueError("data: no datums; give at least one")
    for position, datum in enumerate(data):
        if not isinstance(datum, Datum):
            raise TypeError(f"data[{position}]: expected a Datum, got {type(datum).__name__}")
    return data
