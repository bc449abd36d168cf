# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family params."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import Array, ForbidExtra, define
from tinkerwire_base.unset import UNSET, UnsetType
from tinkerwire_base.validators import (
    field_validator,
)

from .futures import RequestID
from .inputs import ImageFormat, TensorDtype
from .optimizers import AdamParams
from .sampling import StopCondition
from .telemetry import Severity
from .training import LossFnType, ModelID


@define
class DatumParam(ForbidExtra):
    """One training example: an input and the tensors of its loss.

    Wire: 0.1.0 to before 0.3.0.
    """

    loss_fn_inputs: LossFnInputsParam
    """Tensors of the loss."""
    model_input: ModelInputParam
    """Input of the model."""


@define
class EncodedTextChunkParam(ForbidExtra):
    """A run of text as token ids.

    Wire: 0.1.0 to before 0.3.0.
    """

    tokens: Sequence[int] | Array = field(validator=field_validator())
    """Token ids in order."""
    type: Literal["encoded_text"] = field(default="encoded_text", validator=field_validator())
    """Tag of the chunk."""


@define
class ForwardBackwardInputParam(ForbidExtra):
    """Datums and the loss to compute on them.

    Wire: 0.1.0 to before 0.3.0.
    """

    data: list[DatumParam]
    """The datums."""
    loss_fn: LossFnType
    """The loss."""


@define
class FutureRetrieveParams(ForbidExtra):
    """Request to wait for a result.

    Wire: 0.1.0 to before 0.3.0.
    """

    request_id: RequestID
    """The work."""
    model_id: ModelID | UnsetType = field(default=UNSET)
    """The model."""


@define
class GenericEventParam(ForbidExtra):
    """Anything else.

    Wire: 0.1.0 to before 0.3.0.
    """

    event: Literal["GENERIC_EVENT"] = field(default="GENERIC_EVENT")
    """Kind of the event, one of EventType."""
    event_id: str
    """Identifies the event, a UUID."""
    event_name: str
    """Name of the event."""
    event_session_index: int
    """Index among the session's events, from 0."""
    severity: Severity
    """Severity of the event."""
    timestamp: datetime
    """Time of the event."""
    event_data: dict[str, Any] | UnsetType = field(default=UNSET)
    """Details by name."""


@define
class ImageAssetPointerChunkParam(ForbidExtra):
    """An image that the server fetches from a URL.

    Wire: 0.1.0 to before 0.3.0.
    """

    format: ImageFormat = field(validator=field_validator())
    """Encoding of the stored image."""
    height: int = field(validator=field_validator())
    """Height in pixels."""
    location: str = field(validator=field_validator())
    """Location of the image."""
    tokens: int = field(validator=field_validator())
    """Number of tokens of the image in the input."""
    type: Literal["image_asset_pointer"] = field(default="image_asset_pointer", validator=field_validator())
    """Tag of the chunk."""
    width: int = field(validator=field_validator())
    """Width in pixels."""


@define
class LoraConfigParam(ForbidExtra):
    """Size and target layers of a LoRA adapter.

    Wire: 0.1.0 to before 0.3.0.
    """

    rank: int
    """Inner dimension of the adapter."""
    seed: int | UnsetType | None = field(default=UNSET)
    """Seed of the initial weights; null draws a seed."""
    train_unembed: bool | UnsetType | None = field(default=UNSET)
    """True if the unembedding is adapted."""
    train_mlp: bool | UnsetType | None = field(default=UNSET)
    """True if the MLP layers are adapted."""
    train_attn: bool | UnsetType | None = field(default=UNSET)
    """True if the attention layers are adapted."""


@define
class ModelCreateParams(ForbidExtra):
    """Request to create a model to train.

    Wire: 0.1.0 to before 0.3.0.
    """

    base_model: str
    """Name of the base model."""
    lora_config: LoraConfigParam | UnsetType = field(default=UNSET)
    """The adapter; null trains the whole model."""
    type: Literal["create_model"] = field(default="create_model")
    """Tag of the request."""
    user_metadata: dict[str, Any] | UnsetType | None = field(default=UNSET)
    """Free keys and values of the user, kept with the training run. (wire 0.2.0 and later)"""


@define
class ModelGetInfoParams(ForbidExtra):
    """Request to describe a model.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    type: Literal["get_info"] = field(default="get_info")
    """Tag of the request."""


ModelInputChunkParam: TypeAlias = EncodedTextChunkParam | ImageAssetPointerChunkParam
"""
A piece of a model's input.

Wire: 0.1.0 to before 0.3.0.
"""


@define
class ModelInputParam(ForbidExtra):
    """The input of a model, a sequence of chunks.

    Wire: 0.1.0 to before 0.3.0.
    """

    chunks: list[ModelInputChunkParam] = field(validator=field_validator())
    """The chunks in order."""


@define
class ModelUnloadParams(ForbidExtra):
    """Request to unload a model.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    type: Literal["unload_model"] = field(default="unload_model")
    """Tag of the request."""


@define
class SamplingAsampleParams(ForbidExtra):
    """Request for samples after a prompt, and for logprobs of the prompt itself.

    Wire: 0.1.0 to before 0.3.0.
    """

    prompt: ModelInputParam
    """Prompt to continue."""
    sampling_params: SamplingParamsParam
    """Parameters of token sampling."""
    num_samples: int | UnsetType = field(default=UNSET)
    """Number of samples."""
    base_model: str | UnsetType = field(default=UNSET)
    """Name of the base model."""
    model_path: str | UnsetType = field(default=UNSET)
    """The tinker:// path of the weights."""
    prompt_logprobs: bool | UnsetType = field(default=UNSET)
    """True to return logprobs of the prompt."""
    type: Literal["sample"] = field(default="sample")
    """Tag of the request."""


@define
class SamplingParamsParam(ForbidExtra):
    """Parameters of token sampling.

    Wire: 0.1.0 to before 0.3.0.
    """

    max_tokens: int | UnsetType | None = field(default=UNSET, validator=field_validator())
    """Maximum number of tokens; null for the server's limit."""
    seed: int | UnsetType | None = field(default=UNSET, validator=field_validator())
    """Seed of sampling; null for a random one."""
    stop: StopCondition | UnsetType | None = field(default=UNSET, validator=field_validator())
    """Stop condition before max_tokens; null for the model's end token only."""
    temperature: float | UnsetType = field(default=UNSET, validator=field_validator())
    """Divisor of the logits; 0 always takes the most likely token."""
    top_k: int | UnsetType = field(default=UNSET, validator=field_validator())
    """Number of most likely tokens to sample from; -1 for all."""
    top_p: float | UnsetType = field(default=UNSET, validator=field_validator())
    """Total probability of the most likely tokens to sample from."""


@define
class SamplingSampleParams(ForbidExtra):
    """Request to sample after a prompt; the response has the samples.

    Wire: 0.1.0 to before 0.3.0.
    """

    prompt: ModelInputParam = field(validator=field_validator())
    """Prompt to continue."""
    sampling_params: SamplingParamsParam = field(validator=field_validator())
    """Parameters of token sampling."""
    num_samples: int | UnsetType = field(default=UNSET, validator=field_validator())
    """Number of samples."""
    base_model: str | UnsetType = field(default=UNSET, validator=field_validator())
    """Name of the base model."""
    model_path: str | UnsetType = field(default=UNSET, validator=field_validator())
    """The tinker:// path of the weights."""
    prompt_logprobs: bool | UnsetType = field(default=UNSET, validator=field_validator())
    """True to return logprobs of the prompt."""
    type: Literal["sample"] = field(default="sample", validator=field_validator())
    """Tag of the request."""


@define
class SessionEndEventParam(ForbidExtra):
    """The client ended.

    Wire: 0.1.0 to before 0.3.0.
    """

    duration: str
    """Run time of the client, as H:MM:SS.ffffff."""
    event: Literal["SESSION_END"] = field(default="SESSION_END")
    """Kind of the event, one of EventType."""
    event_id: str
    """Identifies the event, a UUID."""
    event_session_index: int
    """Index among the session's events, from 0."""
    severity: Severity
    """Severity of the event."""
    timestamp: datetime
    """Time of the event."""


@define
class SessionStartEventParam(ForbidExtra):
    """The client started.

    Wire: 0.1.0 to before 0.3.0.
    """

    event: Literal["SESSION_START"] = field(default="SESSION_START")
    """Kind of the event, one of EventType."""
    event_id: str
    """Identifies the event, a UUID."""
    event_session_index: int
    """Index among the session's events, from 0."""
    severity: Severity
    """Severity of the event."""
    timestamp: datetime
    """Time of the event."""


@define
class TelemetrySendParams(ForbidExtra):
    """Request to report events of one client.

    Wire: 0.1.0 to before 0.3.0.
    """

    events: list[TelemetryEventParam]
    """The events."""
    platform: str
    """Operating system, for example Linux."""
    sdk_version: str
    """Wire version of the client."""
    session_id: str
    """The session that the events belong to."""


@define
class TensorDataParam(ForbidExtra):
    """A tensor, its values row by row in one flat list.

    Wire: 0.1.0 to before 0.3.0.
    """

    data: Sequence[float] | Array
    """Flat values in row-major order; whole numbers when dtype is int64."""
    dtype: TensorDtype
    """Kind of the numbers."""
    shape: list[int] | UnsetType | None = field(default=UNSET)
    """Length of each dimension; null means one dimension as long as data."""


LossFnInputsParam: TypeAlias = dict[str, TensorDataParam]
"""
Tensors of a loss by name, as in LossFnInputs.

Wire: 0.1.0 to before 0.3.0.
"""


@define
class TrainingForwardBackwardParams(ForbidExtra):
    """Request to compute a loss and its gradients, as JSON.

    Wire: 0.1.0 to before 0.3.0.
    """

    forward_backward_input: ForwardBackwardInputParam
    """Datums and loss."""
    model_id: ModelID
    """The model."""


@define
class TrainingForwardParams(ForbidExtra):
    """Request to compute a loss without gradients.

    Wire: 0.1.0 to before 0.3.0.
    """

    forward_input: ForwardBackwardInputParam
    """Datums and loss."""
    model_id: ModelID
    """The model."""


@define
class TrainingOptimStepParams(ForbidExtra):
    """Request to update the weights with the accumulated gradients.

    Wire: 0.1.0 to before 0.3.0.
    """

    adam_params: AdamParams
    """Settings of the step."""
    model_id: ModelID
    """The model."""
    type: Literal["optim_step"] = field(default="optim_step")
    """Tag of the request."""


@define
class UnhandledExceptionEventParam(ForbidExtra):
    """An exception reached the user.

    Wire: 0.1.0 to before 0.3.0.
    """

    error_message: str
    """Text of the exception."""
    error_type: str
    """Class of the exception."""
    event: Literal["UNHANDLED_EXCEPTION"] = field(default="UNHANDLED_EXCEPTION")
    """Kind of the event, one of EventType."""
    event_id: str
    """Identifies the event, a UUID."""
    event_session_index: int
    """Index among the session's events, from 0."""
    severity: Severity
    """Severity of the event."""
    timestamp: datetime
    """Time of the event."""
    traceback: str | UnsetType | None = field(default=UNSET)
    """Traceback of the exception."""


TelemetryEventParam: TypeAlias = (
    SessionStartEventParam | SessionEndEventParam | UnhandledExceptionEventParam | GenericEventParam
)
"""
An event in a client.

Wire: 0.1.0 to before 0.3.0.
"""


@define
class WeightLoadParams(ForbidExtra):
    """Request to load saved weights into a model.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    path: str
    """The tinker:// path of the weights."""
    type: Literal["load_weights"] = field(default="load_weights")
    """Tag of the request."""


@define
class WeightSaveForSamplerParams(ForbidExtra):
    """Request to save weights to sample from, under a name or directly into a new sampling session.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    path: str | UnsetType = field(default=UNSET)
    """Name of the checkpoint."""
    type: Literal["save_weights_for_sampler"] = field(default="save_weights_for_sampler")
    """Tag of the request."""


@define
class WeightSaveParams(ForbidExtra):
    """Request to save weights and optimizer state.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    path: str | UnsetType = field(default=UNSET)
    """Name of the checkpoint; null lets the server name it."""
    type: Literal["save_weights"] = field(default="save_weights")
    """Tag of the request."""
