"""TrainingClient: forward and backward passes and optimizer steps on one model, in call order."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

from tinkerwire_base import console_urls
from tinkerwire_base.call import Call
from tinkerwire_base.errors import TinkerError
from tinkerwire_base.short_repr import short_repr
from tinkerwire_base.validators import one_of, require_optional_metadata
from tinkerwire_generated import models
from tinkerwire_generated.api.training import forward, forward_backward, get_info, optim_step, unload_model

from .._futures.awaitable_client import AwaitableClient
from .._futures.future import APIFuture, describe_creation
from .._session.session import Session
from .._telemetry.reporter import Telemetry
from .._tokenizers.lookup import load_tokenizer, tokenizer_id_of
from .._transport.backpressure import Traffic
from .._usage import Usage
from .batch_submission import ChunkRequestBuilder
from .batch_validation import validate_data
from .checkpointing import CheckpointMixin
from .chunking import ChunkLimits
from .idempotent_saves import NamedSaves
from .losses.client_loss import ArrayKind, CustomLoss, CustomLossFn
from .losses.handles import LossHandle
from .model_creation import ModelFactory
from .operations import Operations


class TrainingClient(CheckpointMixin, AwaitableClient):
    """Client that trains one model.

    A ServiceClient creates these clients. Every method starts its operation at once and returns a future. The server
    runs the operations in call order, so that no wait is needed between them. Creating the model is the first
    operation; await the client, or call ``result()``, to wait for it.

    Errors of the server are raised by the future: an APIError, or a RequestFailedError if the operation itself failed.
    Arguments are validated before anything is sent.

    Example:
        >>> service = tinker.ServiceClient(base_url="local")
        >>> training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4)
        >>> datum = tinker.Datum(
        ...     model_input=tinker.ModelInput.from_ints([72, 101, 108, 108]),
        ...     loss_fn_inputs={"target_tokens": [101, 108, 108, 111], "weights": [1.0, 1.0, 1.0, 1.0]},
        ... )
        >>> loss = training.forward_backward([datum], "cross_entropy")
        >>> step = training.optim_step(tinker.AdamParams(learning_rate=1e-3))
        >>> loss.result().metrics["loss:sum"] > 0
        True
        >>> step.result().metrics is not None
        True
        >>> training.save_state("first").result().path
        'tinker://.../weights/first'
        >>> service.close().result()
    """

    def __init__(self, session: Session, chunk_limits: ChunkLimits, create: ModelFactory) -> None:
        self._session = session
        self._connection = session.connection
        # A reference that keeps the connection open for the lifetime of this client.
        self._owner = session.connection.owner
        self._operations = Operations(session.connection, chunk_limits, create)
        self._creation = self._operations.creation
        self._saves = NamedSaves(session.connection, self._operations)

    # --- creation --------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<TrainingClient {describe_creation(self._creation, 'model')} at {self._connection.base_url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a TrainingClient cannot be pickled or copied, because this process orders its operations; send the path "
            "of save_state() instead, and call create_training_client_from_state() there"
        )

    @property
    def model_id(self) -> str:
        """Id of the model; reading it waits for the model's creation and raises its error."""
        return self._creation.result()

    # --- training --------------------------------------------------------------------------------------------------

    def forward(
        self,
        data: Sequence[models.Datum],
        loss_fn: models.LossFnType,
        loss_fn_config: Mapping[str, float | str] | None = None,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        """Compute the loss of a batch without gradients.

        A large batch is sent in several requests, see :class:`ChunkLimits`, whose results are merged.

        Args:
            data: the batch, at least one datum. Each of its ``loss_fn_inputs`` has one value per position of
                ``model_input``, with the shape ``[length]`` or ``[length, k]``.
            loss_fn: name of the loss, for example ``cross_entropy``.
            loss_fn_config: settings of the loss by name.

        Returns:
            A future of the outputs, in the order of ``data``, and of the metrics. ``logprobs`` are float32, in nats;
            ``loss:sum`` is the sum over all positions, in nats.

        Raises:
            TypeError: ``data`` is not a list of Datum, or a setting has the wrong type.
            ValueError: ``data`` is empty.
            DialectError: raised by the future; the wire version of the server does not support a field.
        """
        return self._start_batch("Forward", _forward, data, loss_fn, loss_fn_config)

    async def forward_async(
        self,
        data: Sequence[models.Datum],
        loss_fn: models.LossFnType,
        loss_fn_config: Mapping[str, float | str] | None = None,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        """Return the future of :meth:`forward` at once."""
        return self.forward(data, loss_fn, loss_fn_config)

    def forward_backward(
        self,
        data: Sequence[models.Datum],
        loss_fn: models.LossFnType,
        loss_fn_config: Mapping[str, float | str] | None = None,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        """Compute the loss of a batch and accumulate its gradients; arguments, result and errors as for forward."""
        return self._start_batch("ForwardBackward", _forward_backward, data, loss_fn, loss_fn_config)

    async def forward_backward_async(
        self,
        data: Sequence[models.Datum],
        loss_fn: models.LossFnType,
        loss_fn_config: Mapping[str, float | str] | None = None,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        """Return the future of :meth:`forward_backward` at once."""
        return self.forward_backward(data, loss_fn, loss_fn_config)

    def forward_backward_custom(
        self,
        data: Sequence[models.Datum],
        loss_fn: CustomLossFn | LossHandle,
        *,
        loss_type_input: Literal["logprobs"] | None = None,
        arrays: ArrayKind | None = None,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        """Run forward_backward with a custom loss, a function of the model's log probabilities.

        ``loss_fn(data, logprobs)`` receives the batch and, per datum, the log probabilities of its target_tokens:
        float32, in nats, in the shape of the target_tokens. It returns the loss, one number, and a dict of metrics.
        With torch, it computes the loss from the tensors that it receives. With numpy, it also returns, as a third
        value, the gradients of the loss with respect to the log probabilities, one array per datum.

        The function runs on a separate thread. Later operations of this client wait for it, so that it must not wait
        for one of them: ``result()`` raises RuntimeError there. If the function fails or is cancelled, operations that
        start before its error is retrieved raise PrecedingOperationError: they would train on or save gradients that
        do not exist. The accumulated gradients do not change.

        A LossHandle, created by ServiceClient.create_custom_loss, is a loss of one datum, summed over the batch. If
        the server computes it, the server receives all inputs of the datums and returns its own metrics.

        Args:
            data: the batch. Each datum has ``target_tokens``; other inputs are for the function and are not sent.
            loss_fn: the function, or a LossHandle of this client's session.
            loss_type_input: deprecated; ``logprobs`` is the only value.
            arrays: type of the log probabilities, ``torch`` or ``numpy``; None selects torch if it is installed.

        Returns:
            A future of the merged result of the backward pass. ``loss:sum`` is the loss that the function returned.

        Raises:
            TypeError: ``data`` is not a list of Datum, or ``loss_fn`` is not a synchronous function.
            ValueError: ``data`` is empty, a datum has no target_tokens, or torch is not installed.
        """
        if loss_type_input is not None:
            one_of("logprobs")("loss_type_input", loss_type_input)
            warnings.warn("loss_type_input is deprecated; omit it", DeprecationWarning, stacklevel=2)
        if isinstance(loss_fn, LossHandle):
            return self._forward_backward_by_handle(data, loss_fn, arrays)
        return self._start_custom(CustomLoss(validate_data(data), loss_fn, arrays))

    async def forward_backward_custom_async(
        self,
        data: Sequence[models.Datum],
        loss_fn: CustomLossFn | LossHandle,
        *,
        loss_type_input: Literal["logprobs"] | None = None,
        arrays: ArrayKind | None = None,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        """Return the future of :meth:`forward_backward_custom` at once."""
        return self.forward_backward_custom(data, loss_fn, loss_type_input=loss_type_input, arrays=arrays)

    def optim_step(
        self, optim_params: models.OptimParams | None = None, *, adam_params: models.AdamParams | None = None
    ) -> APIFuture[models.OptimStepResponse]:
        """Take one optimizer step with the accumulated gradients, and clear them.

        Args:
            optim_params: settings of the step, for the optimizer of the model; wire 0.29.1 and later for settings
                other than AdamParams.
            adam_params: older name of ``optim_params``.

        Returns:
            A future of the metrics of the step.

        Raises:
            TypeError: the settings are missing or have the wrong type.
            ValueError: both arguments are set.
        """
        if optim_params is not None and adam_params is not None:
            raise ValueError("optim_params and adam_params are the same argument; pass one of them")
        params = adam_params if optim_params is None else optim_params
        if not isinstance(params, models.AdamParams | models.DimuonParams | models.OptimParamsBase):
            raise TypeError(
                f"optim_params: expected AdamParams or the params of another optimizer, got {short_repr(params)}"
            )
        settings: dict[str, Any] = (
            {"adam_params": params} if isinstance(params, models.AdamParams) else {"optimizer_params": params}
        )

        def call(model_id: str, seq_id: int) -> Call[models.UntypedAPIFuture]:
            return optim_step(body=models.OptimStepRequest(**settings, model_id=model_id, seq_id=seq_id))

        return self._start("OptimStep", lambda: self._operations.start("OptimStep", call, models.OptimStepResponse))

    async def optim_step_async(
        self, optim_params: models.OptimParams | None = None, *, adam_params: models.AdamParams | None = None
    ) -> APIFuture[models.OptimStepResponse]:
        """Return the future of :meth:`optim_step` at once."""
        return self.optim_step(optim_params, adam_params=adam_params)

    # --- information -----------------------------------------------------------------------------------------------

    def get_telemetry(self) -> Telemetry | None:
        """Return the telemetry reporter of the session; None if TINKER_TELEMETRY disables it."""
        return self._session.telemetry

    @property
    def usage(self) -> Usage:
        """Number of tokens in this client's results so far."""
        return self._operations.usage_counter.usage

    def get_info(self) -> models.GetInfoResponse:
        """Return the server's description of the model; wait for the model's creation."""
        return self._info().result()

    async def get_info_async(self) -> models.GetInfoResponse:
        """Await :meth:`get_info`."""
        return await self._info()

    def get_tokenizer(self) -> Any:
        """Load the model's tokenizer with transformers; the tokenizer of the embedded server is built in.

        Raises:
            ImportError: ``tinkerwire[tokenizers]`` is not installed.
            TinkerError: the server names neither the tokenizer nor the base model.
        """
        info = self.get_info()
        name, tokenizer_id = info.model_data.model_name or info.model_name, info.model_data.tokenizer_id
        if not (name or tokenizer_id):
            raise TinkerError(f"model {info.model_id}: the server names neither its tokenizer nor its base model")
        return load_tokenizer(tokenizer_id_of(name or "", tokenizer_id))

    def get_console_url(self) -> str:
        """Return the URL of this training run in the Tinker console; wait for the model's creation."""
        return console_urls.run_page(self.model_id)

    def unload_model(self) -> APIFuture[models.UnloadModelResponse]:
        """Unload the model from the server, after the operations started so far; wire versions before 0.26.2."""

        def call(model_id: str, _: int) -> Call[models.UntypedAPIFuture]:
            return unload_model(body=models.UnloadModelRequest(model_id=model_id))

        return self._operations.start("UnloadModel", call, models.UnloadModelResponse)

    async def unload_model_async(self) -> APIFuture[models.UnloadModelResponse]:
        """Return the future of :meth:`unload_model` at once."""
        return self.unload_model()

    def _start_batch(
        self,
        kind: str,
        build: ChunkRequestBuilder,
        data: Sequence[models.Datum],
        loss_fn: models.LossFnType,
        config: Mapping[str, float | str] | None,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        require_optional_metadata("loss_fn_config", config)
        batch = models.ForwardBackwardInput(
            data=validate_data(data), loss_fn=loss_fn, loss_fn_config=dict(config) if config else None
        )
        return self._start(kind, lambda: self._operations.start_batch(kind, build, batch))

    def _start_custom(self, loss: CustomLoss) -> APIFuture[models.ForwardBackwardOutput]:
        return self._start("ForwardBackward", lambda: self._operations.start_custom(_forward, _forward_backward, loss))

    def _forward_backward_by_handle(
        self, data: Sequence[models.Datum], handle: LossHandle, arrays: ArrayKind | None
    ) -> APIFuture[models.ForwardBackwardOutput]:
        if arrays == "numpy":
            raise ValueError(f"arrays: loss {handle.name} computes in torch; omit the argument")
        data = validate_data(data)
        handle.check(data, self._session.known_id)
        if handle.loss_id is not None:
            return self.forward_backward(data, "custom", {"loss_id": handle.loss_id})
        return self._start_custom(CustomLoss(data, handle.batch_loss(), "torch"))

    def _info(self) -> APIFuture[models.GetInfoResponse]:
        async def fetch() -> models.GetInfoResponse:
            model_id = await self._creation.watch()
            return await self._connection.call(
                get_info(body=models.GetInfoRequest(model_id=model_id)), Traffic.TRAINING
            )

        return self._connection.start(fetch)


def _forward(model_id: str, seq_id: int, part: models.ForwardBackwardInput) -> Call[models.UntypedAPIFuture]:
    return forward(body=models.ForwardRequest(forward_input=part, model_id=model_id, seq_id=seq_id))


def _forward_backward(model_id: str, seq_id: int, part: models.ForwardBackwardInput) -> Call[models.UntypedAPIFuture]:
    body = models.ForwardBackwardRequest(forward_backward_input=part, model_id=model_id, seq_id=seq_id)
    return forward_backward(body=body)
