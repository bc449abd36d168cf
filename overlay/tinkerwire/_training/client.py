"""Training one model: forward, backward and optimizer steps, in the order of the calls."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

from tinkerwire_base import console_urls
from tinkerwire_base.call import Call
from tinkerwire_base.errors import TinkerError
from tinkerwire_base.short_repr import short_repr
from tinkerwire_base.validators import one_of
from tinkerwire_generated.api.training import forward, forward_backward, get_info, optim_step, unload_model
from tinkerwire_generated.models import (
    AdamParams,
    Datum,
    DimuonParams,
    ForwardBackwardInput,
    ForwardBackwardOutput,
    ForwardBackwardRequest,
    ForwardRequest,
    GetInfoRequest,
    GetInfoResponse,
    LossFnType,
    OptimParams,
    OptimParamsBase,
    OptimStepRequest,
    OptimStepResponse,
    UnloadModelRequest,
    UnloadModelResponse,
    UntypedAPIFuture,
)

from .._futures.awaitable_client import AwaitableClient
from .._futures.future import APIFuture, describe
from .._session.session import Session
from .._telemetry.reporter import Telemetry
from .._tokenizers.lookup import load_tokenizer, tokenizer_id_of
from .._transport.backpressure import Traffic
from .._usage import Usage
from .batch_validation import validate_data
from .checkpointing import CheckpointMixin
from .chunking import ChunkLimits
from .idempotent_saves import NamedSaves
from .losses.client_loss import ArrayKind, CustomLossFn
from .losses.handles import LossHandle
from .model_creation import ModelFactory
from .operations import Operations


class TrainingClient(CheckpointMixin, AwaitableClient):
    """One model being trained.

    Every method sends its request at once, in the order of the calls, and returns a future; waiting is never
    needed between operations. A ServiceClient makes these clients; the model's creation is the first operation,
    and awaiting the client waits for it.
    """

    def __init__(self, session: Session, chunk_limits: ChunkLimits, create: ModelFactory) -> None:
        self._session = session
        self._connection = session.connection
        # Held for as long as this client is: the connection stays open.
        self._owner = session.connection.owner
        self._operations = Operations(session.connection, chunk_limits, create)
        self._creation = self._operations.creation
        self._saves = NamedSaves(session.connection, self._operations)

    # --- the client as something that is being created -----------------------------------------------------------

    def __repr__(self) -> str:
        return f"<TrainingClient {describe(self._creation, 'model')} at {self._connection.base_url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a TrainingClient cannot be pickled or copied: the order of its operations is kept in this process; send "
            "the path of save_state() instead, and create_training_client_from_state() there"
        )

    @property
    def model_id(self) -> str:
        """The model's id; waits for its creation."""
        return self._creation.result()

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
        return self._operations.start_batch("Forward", _forward, data, loss_fn, loss_fn_config)

    async def forward_async(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float | str] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """:meth:`forward`; the future comes at once."""
        return self.forward(data, loss_fn, loss_fn_config)

    def forward_backward(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float | str] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Compute the loss and add its gradients to those of the model; arguments and errors as for forward."""
        return self._operations.start_batch("ForwardBackward", _forward_backward, data, loss_fn, loss_fn_config)

    async def forward_backward_async(
        self, data: Sequence[Datum], loss_fn: LossFnType, loss_fn_config: Mapping[str, float | str] | None = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """:meth:`forward_backward`; the future comes at once."""
        return self.forward_backward(data, loss_fn, loss_fn_config)

    def forward_backward_custom(
        self,
        data: Sequence[Datum],
        loss_fn: CustomLossFn | LossHandle,
        *,
        loss_type_input: Literal["logprobs"] | None = None,
        arrays: ArrayKind | None = None,
    ) -> APIFuture[ForwardBackwardOutput]:
        """forward_backward with a loss of your own, a function of the log probabilities that the model gives.

        ``loss_fn(data, logprobs)`` gets the batch and, per datum, the log probabilities of its target_tokens in
        their shape, float32, in nats. It returns the loss, one number, and a dict of metrics; with torch it computes
        from the tensors that it got. As a third result it may return the gradients of the loss by the log
        probabilities, an array per datum: then neither torch nor a loss that follows from tensors is needed.

        It runs on a thread of its own. Operations asked for later wait for it, so it must not wait for one of this
        client: there, their ``result()`` is a RuntimeError. If it fails or is cancelled, operations that were asked
        for after it, and before its error is retrieved, fail with PrecedingOperationError: they would train on or save
        gradients that do not exist. The gradients gathered so far are as they were.

        A LossHandle, made by ServiceClient.create_custom_loss, stands for a loss of one datum, summed over the batch.
        The server computes it where it does that; it then gets all inputs of the datums, and gives what metrics it has.

        Args:
            data: the batch; each datum has target_tokens, and what else the function reads, which is not sent.
            loss_fn: the loss, or the handle of one of this client's session.
            loss_type_input: deprecated; there is nothing but ``logprobs``.
            arrays: what the function gets, ``torch`` or ``numpy``; None: torch where it is installed.

        Raises:
            ValueError, TypeError: no data, no target_tokens or no function; nothing was sent.
        """
        if loss_type_input is not None:
            one_of("logprobs")("loss_type_input", loss_type_input)
            warnings.warn("loss_type_input is deprecated; leave it away", DeprecationWarning, stacklevel=2)
        if isinstance(loss_fn, LossHandle):
            return self._forward_backward_by_handle(data, loss_fn, arrays)
        return self._operations.start_custom(_forward, _forward_backward, data, loss_fn, arrays)

    async def forward_backward_custom_async(
        self,
        data: Sequence[Datum],
        loss_fn: CustomLossFn | LossHandle,
        *,
        loss_type_input: Literal["logprobs"] | None = None,
        arrays: ArrayKind | None = None,
    ) -> APIFuture[ForwardBackwardOutput]:
        """:meth:`forward_backward_custom`; the future comes at once."""
        return self.forward_backward_custom(data, loss_fn, loss_type_input=loss_type_input, arrays=arrays)

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
            raise TypeError(f"optim_params: expected AdamParams or those of another optimizer, got {short_repr(given)}")
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

    # --- facts -----------------------------------------------------------------------------------------------------

    def get_telemetry(self) -> Telemetry | None:
        """The reporter of events of the session; None where it is switched off, see TINKER_TELEMETRY."""
        return self._session.telemetry

    @property
    def usage(self) -> Usage:
        """The tokens of this client's results so far."""
        return self._operations.usage_counter.usage

    def get_info(self) -> GetInfoResponse:
        """What the server knows of the model."""
        return self._info().result()

    async def get_info_async(self) -> GetInfoResponse:
        """:meth:`get_info`, awaited."""
        return await self._info()

    def get_tokenizer(self) -> Any:
        """The model's tokenizer, loaded by transformers; the embedded server's is built in.

        Raises:
            ImportError: ``tinkerwire[tokenizers]`` is not installed.
            TinkerError: the server does not say what the model is.
        """
        info = self.get_info()
        name, tokenizer_id = info.model_data.model_name or info.model_name, info.model_data.tokenizer_id
        if not (name or tokenizer_id):
            raise TinkerError(f"model {info.model_id}: the server neither names its tokenizer nor its base model")
        return load_tokenizer(tokenizer_id_of(name or "", tokenizer_id))

    def get_console_url(self) -> str:
        """The page of this training run in the Tinker service's console; waits for the model's creation."""
        return console_urls.run_page(self.model_id)

    def unload_model(self) -> APIFuture[UnloadModelResponse]:
        """Let the server forget the model, after what was asked for so far; before wire 0.26.2."""

        def call(model_id: str, _: int) -> Call[UntypedAPIFuture]:
            return unload_model(body=UnloadModelRequest(model_id=model_id))

        return self._operations.start("UnloadModel", call, UnloadModelResponse)

    async def unload_model_async(self) -> APIFuture[UnloadModelResponse]:
        """:meth:`unload_model`; the future comes at once."""
        return self.unload_model()

    def _forward_backward_by_handle(
        self, data: Sequence[Datum], handle: LossHandle, arrays: ArrayKind | None
    ) -> APIFuture[ForwardBackwardOutput]:
        if arrays == "numpy":
            raise ValueError(f"arrays: loss {handle.name} computes in torch; leave it away")
        data = validate_data(data)
        handle.check(data, self._session.known_id)
        if handle.loss_id is not None:
            return self.forward_backward(data, "custom", {"loss_id": handle.loss_id})
        return self._operations.start_custom(_forward, _forward_backward, data, handle.batch_loss(), "torch")

    def _info(self) -> APIFuture[GetInfoResponse]:
        async def ask() -> GetInfoResponse:
            model_id = await self._creation.watch()
            return await self._connection.call(get_info(body=GetInfoRequest(model_id=model_id)), Traffic.TRAINING)

        return self._connection.start(ask)


def _forward(model_id: str, seq_id: int, part: ForwardBackwardInput) -> Call[UntypedAPIFuture]:
    return forward(body=ForwardRequest(forward_input=part, model_id=model_id, seq_id=seq_id))


def _forward_backward(model_id: str, seq_id: int, part: ForwardBackwardInput) -> Call[UntypedAPIFuture]:
    body = ForwardBackwardRequest(forward_backward_input=part, model_id=model_id, seq_id=seq_id)
    return forward_backward(body=body)
