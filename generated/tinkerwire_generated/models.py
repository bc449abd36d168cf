# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Every type of the wire, of all its versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.behaviour import (
    ErrorCategory,
    ImageBytes,
    ImageLength,
    LossInputs,
    TensorValues,
    TextChunkLength,
    TinkerPath,
    TokenSequence,
)
from tinkerwire_base.model import (
    Array,
    Open,
    Strict,
    define,
    fits,
)
from tinkerwire_base.unset import UNSET, UnsetType

AccessScope: TypeAlias = Literal["owned", "accessible"]
"""
Only what the caller owns, or all that the caller may see.
"""


@define
class AdamParams(Strict):
    """Settings of one AdamW step.

    Wire: 0.1.0 and later.
    """

    learning_rate: float = field(default=0.0001, validator=fits())
    """Step size."""
    beta1: float = field(default=0.9, validator=fits())
    """Decay per step of the mean of gradients."""
    beta2: float = field(default=0.95, validator=fits())
    """Decay per step of the mean of squared gradients."""
    eps: float = field(default=1e-12, validator=fits())
    """Added to the divisor against division by zero."""
    weight_decay: float = field(default=0.0, validator=fits())
    """Decay of the weights, times the step size, apart from the gradient. (wire 0.7.0 and later)"""
    grad_clip_norm: float = field(default=0.0, validator=fits())
    """Largest global norm that the gradient may have; 0 for no limit. (wire 0.7.0 and later)"""


@define
class Checkpoint(Open):
    """Saved weights.

    Wire: 0.1.0 and later.
    """

    checkpoint_id: str
    """The checkpoint within its run, for example weights/0001."""
    checkpoint_type: CheckpointType | str
    """What it is for; values to come are passed on."""
    time: datetime
    """When it was saved."""
    tinker_path: str
    """Where it lies, a tinker:// path."""
    size_bytes: int | None = field(default=None)
    """Its size in bytes. (wire 0.4.0 and later)"""
    public: bool = field(default=False)
    """Whether everybody may load it. (wire 0.4.0 and later)"""
    expires_at: datetime | None = field(default=None)
    """When it will be deleted; null for never. (wire 0.9.0 and later)"""


@define
class CheckpointArchiveUrlResponse(Open):
    """Address of a checkpoint as one archive.

    Wire: 0.2.0 to before 0.36.0.
    """

    url: str
    """The address."""
    expires: datetime
    """When the address stops working."""


CheckpointType: TypeAlias = Literal["training", "sampler"]
"""
What a checkpoint is for, to go on training or to sample.
"""


@define
class CheckpointsListResponse(Open):
    """Checkpoints, and which page of them.

    Wire: 0.1.0 and later.
    """

    checkpoints: list[Checkpoint]
    """The checkpoints."""
    cursor: Cursor | None = field(default=None)
    """Place of the page; null when these are all. (wire 0.4.0 and later)"""


@define
class CompleteMetadataResponse(Open):
    """The result is there and this large; the next poll fetches it with allow_metadata_only off.

    Wire: 0.14.0 and later.
    """

    status: Literal["complete_metadata"] = field(default="complete_metadata")
    """Tag of the answer."""
    response_payload_size: int
    """Size of the result in bytes."""


@define
class CreateModelRequest(Strict):
    """Creates a model to train.

    Wire: 0.1.0 and later.
    """

    session_id: str = field(validator=fits())
    """The session that the model belongs to. (wire 0.3.0 and later)"""
    model_seq_id: int = field(validator=fits())
    """Count of the session's models, from 0. (wire 0.3.0 and later)"""
    base_model: str = field(validator=fits())
    """Name of the base model."""
    user_metadata: dict[str, Any] | None = field(default=None, validator=fits())
    """Free keys and values of the user, kept with the training run. (wire 0.2.0 and later)"""
    lora_config: LoraConfig | None = field(default=None, validator=fits())
    """The adapter; null trains the whole model."""
    type: Literal["create_model"] = field(default="create_model", validator=fits())
    """Tag of the request."""


@define
class CreateModelResponse(Open):
    """Result of create_model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID
    """The new model."""
    type: Literal["create_model"] = field(default="create_model")
    """Tag of the result."""


@define
class CreateSamplingSessionRequest(Strict):
    """Opens a sampling session, on base_model or on model_path.

    Wire: 0.3.0 and later.
    """

    session_id: str = field(validator=fits())
    """The session that it belongs to."""
    sampling_session_seq_id: int = field(validator=fits())
    """Count of the session's sampling sessions, from 0."""
    base_model: str | None = field(default=None, validator=fits())
    """Name of the base model to sample from."""
    model_path: str | None = field(default=None, validator=fits())
    """Where the weights to sample from lie, a tinker:// path."""
    type: Literal["create_sampling_session"] = field(default="create_sampling_session", validator=fits())
    """Tag of the request."""


@define
class CreateSamplingSessionResponse(Open):
    """The open sampling session.

    Wire: 0.3.0 and later.
    """

    sampling_session_id: str
    """Identifies the sampling session in later requests."""
    type: Literal["create_sampling_session"] = field(default="create_sampling_session")
    """Tag of the response."""


@define
class CreateSessionRequest(Strict):
    """Opens a session.

    Wire: 0.3.0 and later.
    """

    tags: list[str] = field(validator=fits())
    """Free words to find the session by."""
    user_metadata: dict[str, Any] | None = field(validator=fits())
    """Free keys and values of the user; null is allowed, leaving it out is not."""
    sdk_version: str = field(validator=fits())
    """Wire version that the client speaks, for example 0.16.1."""
    project_id: str | None = field(default=None, validator=fits())
    """Project that the session belongs to; null for the default one. (wire 0.15.0 and later)"""
    type: Literal["create_session"] = field(default="create_session", validator=fits())
    """Tag of the request."""


@define
class CreateSessionResponse(Open):
    """The open session, with notes that clients log.

    Wire: 0.3.0 and later.
    """

    session_id: str
    """Identifies the session in later requests."""
    info_message: str | None = field(default=None)
    """Note to log as information."""
    warning_message: str | None = field(default=None)
    """Note to log as a warning."""
    error_message: str | None = field(default=None)
    """Note to log as an error; no failure."""
    type: Literal["create_session"] = field(default="create_session")
    """Tag of the response."""


@define
class Cursor(Open):
    """Place of a page in the whole list.

    Wire: 0.1.0 and later.
    """

    offset: int
    """Entries before the page."""
    limit: int
    """Most entries of the page."""
    total_count: int
    """Entries of the whole list."""


@define
class Datum(LossInputs, Strict):
    """One training example: an input and what its loss needs.

    Wire: 0.1.0 and later.
    """

    model_input: ModelInput = field(validator=fits())
    """Input of the model."""
    loss_fn_inputs: LossFnInputs = field(validator=fits())
    """Tensors of the loss."""


@define
class EncodedTextChunk(TextChunkLength, Strict):
    """A run of text as token ids.

    Wire: 0.1.0 and later.
    """

    tokens: Sequence[int] | Array = field(validator=fits())
    """Token ids in order."""
    type: Literal["encoded_text"] = field(default="encoded_text", validator=fits())
    """Tag of the chunk; clients of wire 0.3.0 to 0.16.1 leave it out."""


@define
class ErrorBody(Open):
    """Body of a failed request; servers differ in it, so nothing is required.

    Wire: 0.1.0 and later.
    """

    detail: Any | UnsetType = field(default=UNSET)
    """What went wrong: mostly a sentence, sometimes a structure."""


EventType: TypeAlias = Literal["SESSION_START", "SESSION_END", "UNHANDLED_EXCEPTION", "GENERIC_EVENT"]
"""
Kind of an event.
"""


@define
class ForwardBackwardInput(Strict):
    """Datums and the loss to compute on them.

    Wire: 0.1.0 and later.
    """

    data: list[Datum] = field(validator=fits())
    """The datums."""
    loss_fn: LossFnType = field(validator=fits())
    """The loss."""
    loss_fn_config: dict[str, float] | None = field(default=None, validator=fits())
    """Numbers that tune the loss, by name; null for its defaults. (wire 0.3.0 and later)"""


@define
class ForwardBackwardOutput(Open):
    """Result of forward and forward_backward, as JSON; the loss itself is among the metrics.

    Wire: 0.1.0 to before 0.25.0.
    """

    loss_fn_output_type: str
    """Name of the kind of outputs."""
    loss_fn_outputs: list[LossFnOutput]
    """One map of tensors per datum, in the order of the datums."""
    metrics: dict[str, float]
    """Numbers over all datums, by name:reduction, for example loss:sum (nats)."""


@define
class ForwardBackwardRequest(Strict):
    """Computes a loss and its gradients; as JSON.

    Wire: 0.3.0 to before 0.25.0.
    """

    forward_backward_input: ForwardBackwardInput = field(validator=fits())
    """Datums and loss."""
    model_id: ModelID = field(validator=fits())
    """The model."""
    seq_id: int | None = field(default=None, validator=fits())
    """Place among all operations of the model, counted from 1; they run in this order."""


@define
class ForwardRequest(Strict):
    """Computes a loss without gradients.

    Wire: 0.3.0 to before 0.25.0.
    """

    forward_input: ForwardBackwardInput = field(validator=fits())
    """Datums and loss."""
    model_id: ModelID = field(validator=fits())
    """The model."""
    seq_id: int | None = field(default=None, validator=fits())
    """Place among all operations of the model, counted from 1; they run in this order."""


@define
class FutureRetrieveRequest(Strict):
    """Waits for a result.

    Wire: 0.3.0 and later.
    """

    request_id: RequestID = field(validator=fits())
    """The work."""
    allow_metadata_only: bool = field(default=False, validator=fits())
    """Whether the server may answer with the size of a result in its place. (wire 0.14.0 and later)"""


@define
class GenericEvent(Open):
    """Anything else.

    Wire: 0.1.0 and later.
    """

    event: Literal["GENERIC_EVENT"] = field(default="GENERIC_EVENT", validator=fits())
    """Kind of the event, one of EventType."""
    event_id: str = field(validator=fits())
    """Identifies the event, a UUID."""
    event_session_index: int = field(validator=fits())
    """Count of the session's events, from 0."""
    severity: Severity = field(validator=fits())
    """How grave it is."""
    timestamp: datetime = field(validator=fits())
    """When it happened."""
    event_name: str = field(validator=fits())
    """Name of what happened."""
    event_data: dict[str, Any] = field(factory=dict, validator=fits())
    """Details by name."""


@define
class GetInfoRequest(Strict):
    """Asks what a model is.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=fits())
    """The model."""
    type: Literal["get_info"] = field(default="get_info", validator=fits())
    """Tag of the request."""


@define
class GetInfoResponse(Open):
    """What a model is.

    Wire: 0.1.0 and later.
    """

    model_data: ModelData
    """Names that belong to the model."""
    model_id: ModelID
    """The model."""
    is_lora: bool | None = field(default=None)
    """Whether it is trained by an adapter."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    model_name: str | None = field(default=None)
    """Name of the base model."""
    type: Literal["get_info"] | None = field(default=None)
    """Tag of the response."""


@define
class GetSamplerResponse(Open):
    """Base model and weights of a sampler.

    Wire: 0.6.0 and later.
    """

    sampler_id: str
    """The sampler."""
    base_model: str
    """Name of its base model."""
    model_path: str | None = field(default=None)
    """Where its weights lie, a tinker:// path; null for the base model itself."""


@define
class GetServerCapabilitiesResponse(Open):
    """The base models of the server.

    Wire: 0.1.0 and later.
    """

    supported_models: list[SupportedModel]
    """One entry per base model."""


@define
class GetSessionResponse(Open):
    """What was created under a session.

    Wire: 0.5.1 and later.
    """

    training_run_ids: list[ModelID]
    """Models trained under the session."""
    sampler_ids: list[str]
    """Samplers opened under the session."""


@define
class HealthResponse(Open):
    """Answer of a server that is up.

    Wire: 0.1.0 and later.
    """

    status: Literal["ok"] = field(default="ok")
    """Always "ok"."""


@define
class ImageAssetPointerChunk(ImageLength, Strict):
    """An image that the server fetches from where it is stored.

    Wire: 0.1.0 and later.
    """

    location: str = field(validator=fits())
    """Where the image is stored."""
    format: ImageFormat = field(validator=fits())
    """Encoding of the stored image."""
    height: int | None = field(default=None, validator=fits())
    """Height in pixels. (wire 0.1.0 to before 0.6.0)"""
    width: int | None = field(default=None, validator=fits())
    """Width in pixels. (wire 0.1.0 to before 0.6.0)"""
    tokens: int | None = field(default=None, validator=fits())
    """Number of tokens that the image takes in the input. (wire 0.1.0 to before 0.6.0)"""
    expected_tokens: int | None = field(default=None, validator=fits())
    """Number of tokens that the image is expected to take; null leaves it to the server. (wire 0.6.0 and later)"""
    type: Literal["image_asset_pointer"] = field(default="image_asset_pointer", validator=fits())
    """Tag of the chunk."""


@define
class ImageChunk(ImageBytes, Strict):
    """An image, sent in the request.

    Wire: 0.3.0 and later.
    """

    data: bytes = field(validator=fits())
    """Bytes of the image file, in base64."""
    format: ImageFormat = field(validator=fits())
    """Encoding of the bytes."""
    height: int | None = field(default=None, validator=fits())
    """Height in pixels. (wire 0.3.0 to before 0.6.0)"""
    width: int | None = field(default=None, validator=fits())
    """Width in pixels. (wire 0.3.0 to before 0.6.0)"""
    tokens: int | None = field(default=None, validator=fits())
    """Number of tokens that the image takes in the input. (wire 0.3.0 to before 0.6.0)"""
    expected_tokens: int | None = field(default=None, validator=fits())
    """Number of tokens that the image is expected to take; null leaves it to the server. (wire 0.6.0 and later)"""
    type: Literal["image"] = field(default="image", validator=fits())
    """Tag of the chunk."""


ImageFormat: TypeAlias = Literal["png", "jpeg"]
"""
Encoding of an image.
"""


@define
class ListSessionsResponse(Open):
    """One page of sessions.

    Wire: 0.5.1 and later.
    """

    sessions: list[str]
    """Identifiers of the sessions."""


@define
class LoadWeightsRequest(Strict):
    """Loads saved weights into a model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=fits())
    """The model."""
    path: str = field(validator=fits())
    """Where the weights lie, a tinker:// path."""
    optimizer: bool | None = field(default=None, validator=fits())
    """Whether the optimizer state is loaded too. (wire 0.6.0 and later)"""
    seq_id: int | None = field(default=None, validator=fits())
    """Place among all operations of the model, counted from 1; they run in this order. (wire 0.3.0 and later)"""
    type: Literal["load_weights"] = field(default="load_weights", validator=fits())
    """Tag of the request."""


@define
class LoadWeightsResponse(Open):
    """Result of load_weights.

    Wire: 0.1.0 and later.
    """

    path: str | None = field(default=None)
    """What was loaded, a tinker:// path."""
    type: Literal["load_weights"] | None = field(default=None)
    """Tag of the result."""


LocationPart: TypeAlias = str | int
"""
One step of the way to a field, a name or an index.
"""


@define
class LoraConfig(Strict):
    """Size and places of a LoRA adapter.

    Wire: 0.1.0 and later.
    """

    rank: int = field(validator=fits())
    """Inner dimension of the adapter."""
    seed: int | None = field(default=None, validator=fits())
    """Seed of its first weights; null draws one."""
    train_unembed: bool = field(default=True, validator=fits())
    """Whether the unembedding is adapted."""
    train_mlp: bool = field(default=True, validator=fits())
    """Whether the MLP layers are adapted."""
    train_attn: bool = field(default=True, validator=fits())
    """Whether the attention layers are adapted."""


LossFnType: TypeAlias = Literal["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"]
"""
A loss that the server computes.
"""


@define
class ModelData(Open):
    """Names that belong to a model.

    Wire: 0.1.0 and later.
    """

    arch: str | None = field(default=None)
    """Name of its architecture."""
    model_name: str | None = field(default=None)
    """Name of its base model."""
    tokenizer_id: str | None = field(default=None)
    """Name of its tokenizer; what follows a colon is no part of it. (wire 0.3.0 and later)"""


ModelID: TypeAlias = str
"""
Identifies a model under training, and its training run.
"""


@define
class ModelInput(TokenSequence, Strict):
    """The input of a model, a sequence of chunks.

    Wire: 0.1.0 and later.
    """

    chunks: list[ModelInputChunk] = field(validator=fits())
    """The chunks in order."""


ModelInputChunk: TypeAlias = EncodedTextChunk | ImageAssetPointerChunk | ImageChunk
"""
A piece of a model's input; without a tag its keys tell which.
"""


@define
class OptimStepRequest(Strict):
    """Updates the weights by the gradients so far.

    Wire: 0.1.0 and later.
    """

    adam_params: AdamParams = field(validator=fits())
    """Settings of the step."""
    model_id: ModelID = field(validator=fits())
    """The model."""
    seq_id: int | None = field(default=None, validator=fits())
    """Place among all operations of the model, counted from 1; they run in this order. (wire 0.3.0 and later)"""
    type: Literal["optim_step"] = field(default="optim_step", validator=fits())
    """Tag of the request."""


@define
class OptimStepResponse(Open):
    """Result of optim_step.

    Wire: 0.1.0 and later.
    """

    metrics: dict[str, float] | None = field(default=None)
    """Numbers of the step, by name."""


@define
class ParsedCheckpointTinkerPath(TinkerPath, Open):
    """The parts of a tinker:// path; made by clients, never sent.

    Wire: 0.1.0 and later.
    """

    tinker_path: str
    """The whole path, for example tinker://run/weights/0001."""
    training_run_id: str
    """The training run."""
    checkpoint_type: CheckpointType
    """What the checkpoint is for."""
    checkpoint_id: str
    """The checkpoint within its run, for example weights/0001."""


QueueState: TypeAlias = Literal["active", "paused_capacity", "paused_rate_limit"]
"""
Why a result is not there: at work, or held back for lack of machines or by a rate limit.
"""


RequestErrorCategory: TypeAlias = Literal["unknown", "server", "user"]
"""
Whose fault a failure is: lower case on the wire, read in any case.
"""


@define
class RequestFailedResponse(ErrorCategory, Open):
    """The work failed.

    Wire: 0.3.0 and later.
    """

    error: str
    """What went wrong, in words."""
    category: RequestErrorCategory | str
    """Whose fault it is; values to come are passed on."""


RequestID: TypeAlias = str
"""
Identifies queued work.
"""


@define
class SampleRequest(Strict):
    """Asks for samples after a prompt, and for logprobs of the prompt itself.

    Wire: 0.1.0 and later.
    """

    prompt: ModelInput = field(validator=fits())
    """What to continue."""
    sampling_params: SamplingParams = field(validator=fits())
    """How tokens are drawn."""
    num_samples: int = field(default=1, validator=fits())
    """Number of samples."""
    base_model: str | None = field(default=None, validator=fits())
    """Base model; without a sampling session."""
    model_path: str | None = field(default=None, validator=fits())
    """Where the weights lie, a tinker:// path; without a sampling session."""
    sampling_session_id: str | None = field(default=None, validator=fits())
    """The sampling session. (wire 0.3.0 and later)"""
    seq_id: int | None = field(default=None, validator=fits())
    """Count of the sampling session's requests, from 0. (wire 0.3.0 and later)"""
    prompt_logprobs: bool | None = field(default=None, validator=fits())
    """Whether to give logprobs of the prompt: true, false, or null for the server to say."""
    topk_prompt_logprobs: int = field(default=0, validator=fits())
    """Number of likeliest tokens to give at each place of the prompt; 0 for none. (wire 0.3.0 and later)"""
    type: Literal["sample"] = field(default="sample", validator=fits())
    """Tag of the request."""


@define
class SampleResponse(Open):
    """Result of asample, as JSON.

    Wire: 0.1.0 to before 0.25.0.
    """

    sequences: list[SampledSequence]
    """The samples."""
    prompt_logprobs: list[float | None] | None = field(default=None)
    """Logprob (nats) of each token of the prompt after those before it; null for the first."""
    topk_prompt_logprobs: list[list[TokenLogprob] | None] | None = field(default=None)
    """Likeliest tokens at each place of the prompt, best first; null where there are none. (wire 0.3.0 and later)"""
    type: Literal["sample"] = field(default="sample")
    """Tag of the result."""


@define
class SampledSequence(Open):
    """One sample.

    Wire: 0.1.0 to before 0.25.0.
    """

    stop_reason: StopReason | str
    """Why it ended; values to come are passed on."""
    tokens: list[int]
    """Token ids drawn."""
    logprobs: list[float] | None = field(default=None)
    """Logprob (nats) of each token drawn."""


@define
class SamplingParams(Open):
    """How tokens are drawn.

    Wire: 0.1.0 and later.
    """

    max_tokens: int | None = field(default=None, validator=fits())
    """Most tokens to draw; null for the server's limit."""
    seed: int | None = field(default=None, validator=fits())
    """Seed of the draws; null for none."""
    stop: StopCondition | None = field(default=None, validator=fits())
    """Where to end before max_tokens; null for the model's own end only."""
    temperature: float = field(default=1, validator=fits())
    """Divisor of the logits; 0 always takes the likeliest."""
    top_k: int = field(default=-1, validator=fits())
    """Draw among so many likeliest tokens; -1 for all."""
    top_p: float = field(default=1, validator=fits())
    """Draw among the likeliest tokens of this total probability."""


@define
class SaveWeightsForSamplerRequest(Strict):
    """Saves weights to sample from, under a name or straight into a new sampling session.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=fits())
    """The model."""
    path: str | None = field(default=None, validator=fits())
    """Name of the checkpoint; left out when sampling_session_seq_id is given."""
    sampling_session_seq_id: int | None = field(default=None, validator=fits())
    """Count of the session's sampling sessions, from 0; opens one on these weights. (wire 0.3.0 and later)"""
    seq_id: int | None = field(default=None, validator=fits())
    """Place among all operations of the model, counted from 1; they run in this order. (wire 0.3.0 and later)"""
    ttl_seconds: int | None = field(default=None, validator=fits())
    """Seconds until the checkpoint is deleted; null keeps it. (wire 0.9.0 and later)"""
    type: Literal["save_weights_for_sampler"] = field(default="save_weights_for_sampler", validator=fits())
    """Tag of the request."""


@define
class SaveWeightsForSamplerResponse(Open):
    """Saved weights to sample from, as users see it.

    Wire: 0.1.0 and later.
    """

    path: str
    """Where it was saved, a tinker:// path."""
    type: Literal["save_weights_for_sampler"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsForSamplerResponseInternal(Open):
    """Result of save_weights_for_sampler, with a path or a sampling session, as was asked for.

    Wire: 0.3.0 and later.
    """

    path: str | None = field(default=None)
    """Where it was saved, a tinker:// path."""
    sampling_session_id: str | None = field(default=None)
    """The sampling session that was opened."""
    type: Literal["save_weights_for_sampler"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsRequest(Strict):
    """Saves weights and optimizer state.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=fits())
    """The model."""
    path: str | None = field(default=None, validator=fits())
    """Name of the checkpoint; null lets the server name it."""
    seq_id: int | None = field(default=None, validator=fits())
    """Place among all operations of the model, counted from 1; they run in this order. (wire 0.3.0 and later)"""
    ttl_seconds: int | None = field(default=None, validator=fits())
    """Seconds until the checkpoint is deleted; null keeps it. (wire 0.9.0 and later)"""
    type: Literal["save_weights"] = field(default="save_weights", validator=fits())
    """Tag of the request."""


@define
class SaveWeightsResponse(Open):
    """Result of save_weights.

    Wire: 0.1.0 and later.
    """

    path: str
    """Where it was saved, a tinker:// path."""
    type: Literal["save_weights"] | None = field(default=None)
    """Tag of the result."""


@define
class SessionEndEvent(Open):
    """The client ended.

    Wire: 0.1.0 and later.
    """

    event: Literal["SESSION_END"] = field(default="SESSION_END", validator=fits())
    """Kind of the event, one of EventType."""
    event_id: str = field(validator=fits())
    """Identifies the event, a UUID."""
    event_session_index: int = field(validator=fits())
    """Count of the session's events, from 0."""
    severity: Severity = field(validator=fits())
    """How grave it is."""
    timestamp: datetime = field(validator=fits())
    """When it happened."""
    duration: str = field(validator=fits())
    """How long it ran, as H:MM:SS.ffffff."""


@define
class SessionHeartbeatRequest(Strict):
    """Keeps a session alive.

    Wire: 0.3.0 and later.
    """

    session_id: str = field(validator=fits())
    """The session."""
    type: Literal["session_heartbeat"] = field(default="session_heartbeat", validator=fits())
    """Tag of the request."""


@define
class SessionHeartbeatResponse(Open):
    """The session lives on.

    Wire: 0.3.0 and later.
    """

    type: Literal["session_heartbeat"] = field(default="session_heartbeat")
    """Tag of the response."""


@define
class SessionStartEvent(Open):
    """The client started.

    Wire: 0.1.0 and later.
    """

    event: Literal["SESSION_START"] = field(default="SESSION_START", validator=fits())
    """Kind of the event, one of EventType."""
    event_id: str = field(validator=fits())
    """Identifies the event, a UUID."""
    event_session_index: int = field(validator=fits())
    """Count of the session's events, from 0."""
    severity: Severity = field(validator=fits())
    """How grave it is."""
    timestamp: datetime = field(validator=fits())
    """When it happened."""


@define
class SetCheckpointTtlRequest(Strict):
    """Sets or lifts the time after which a checkpoint is deleted.

    Wire: 0.13.1 and later.
    """

    ttl_seconds: int | None = field(validator=fits())
    """Seconds from now until it is deleted; null, which is sent as such, keeps it."""


Severity: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
"""
How grave an event is.
"""


StopCondition: TypeAlias = str | list[str] | list[int]
"""
Where sampling ends; a string, one of several strings, or one of several token ids.
"""


StopReason: TypeAlias = Literal["length", "stop"]
"""
Why a sample ended: at max_tokens (length) or at a stop condition (stop).
"""


@define
class SupportedModel(Open):
    """A base model of the server; servers add keys to it freely.

    Wire: 0.1.0 and later.
    """

    model_name: str | None = field(default=None)
    """Name under which create_model and create_sampling_session know it."""


@define
class TelemetryBatch(Open):
    """Events of one client, as held before they are sent.

    Wire: 0.1.0 and later.
    """

    events: list[TelemetryEvent]
    """The events."""
    platform: str
    """Operating system, for example Linux."""
    sdk_version: str
    """Wire version that the client speaks."""
    session_id: str
    """The session that the events belong to."""


@define
class TelemetryResponse(Open):
    """The events are taken.

    Wire: 0.1.0 and later.
    """

    status: Literal["accepted"] = field(default="accepted")
    """Always "accepted"."""


@define
class TelemetrySendRequest(Strict):
    """Reports events of one client.

    Wire: 0.3.0 and later.
    """

    events: list[TelemetryEvent] = field(validator=fits())
    """The events."""
    platform: str = field(validator=fits())
    """Operating system, for example Linux."""
    sdk_version: str = field(validator=fits())
    """Wire version that the client speaks."""
    session_id: str = field(validator=fits())
    """The session that the events belong to."""


@define
class TensorData(TensorValues, Strict):
    """A tensor, its values row by row in one flat list.

    Wire: 0.1.0 and later.
    """

    data: Sequence[float] | Array = field(validator=fits())
    """Flat values in row-major order; whole numbers when dtype is int64."""
    dtype: TensorDtype = field(validator=fits())
    """Kind of the numbers."""
    shape: list[int] | None = field(default=None, validator=fits())
    """Length of each dimension; null means one dimension as long as data."""


LossFnInputs: TypeAlias = dict[str, TensorData]
"""
Tensors of a loss by name: target_tokens (int64), weights, advantages, logprobs, clip_low_threshold and clip_high_threshold (float32), mostly one number per input token.
"""


LossFnOutput: TypeAlias = dict[str, TensorData]
"""
Tensors that a loss gives for one datum, by name, such as logprobs (per target token).
"""


TensorDtype: TypeAlias = Literal["int64", "float32"]
"""
Kind of the numbers in a tensor.
"""


TokenLogprob: TypeAlias = tuple[int, float]
"""
A token id and its logprob (nats).
"""


@define
class TrainingRun(Open):
    """The history of one model under training.

    Wire: 0.1.0 and later.
    """

    training_run_id: str
    """The run, which has the identifier of its model."""
    base_model: str
    """Name of the base model."""
    model_owner: str
    """Who owns it."""
    is_lora: bool
    """Whether it trains an adapter."""
    last_request_time: datetime
    """When it was last worked on."""
    corrupted: bool = field(default=False)
    """Whether an error has made it useless."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    last_checkpoint: Checkpoint | None = field(default=None)
    """Newest checkpoint to go on from."""
    last_sampler_checkpoint: Checkpoint | None = field(default=None)
    """Newest checkpoint to sample from."""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values that create_model was given. (wire 0.2.0 and later)"""


@define
class TrainingRunsResponse(Open):
    """One page of training runs.

    Wire: 0.1.0 and later.
    """

    training_runs: list[TrainingRun]
    """The runs."""
    cursor: Cursor
    """Place of the page."""


@define
class TryAgainResponse(Open):
    """The result is not there yet.

    Wire: 0.1.0 and later.
    """

    request_id: str
    """The work."""
    queue_state: QueueState | str
    """Why the result is not there; values to come are passed on. (wire 0.2.0 and later)"""
    queue_state_reason: str | None = field(default=None)
    """The same in words for the user. (wire 0.7.0 and later)"""
    type: Literal["try_again"] = field(default="try_again")
    """Tag of the answer."""


@define
class UnhandledExceptionEvent(Open):
    """An exception reached the user.

    Wire: 0.1.0 and later.
    """

    event: Literal["UNHANDLED_EXCEPTION"] = field(default="UNHANDLED_EXCEPTION", validator=fits())
    """Kind of the event, one of EventType."""
    event_id: str = field(validator=fits())
    """Identifies the event, a UUID."""
    event_session_index: int = field(validator=fits())
    """Count of the session's events, from 0."""
    severity: Severity = field(validator=fits())
    """How grave it is."""
    timestamp: datetime = field(validator=fits())
    """When it happened."""
    error_type: str = field(validator=fits())
    """Class of the exception."""
    error_message: str = field(validator=fits())
    """Text of the exception."""
    traceback: str | None = field(default=None, validator=fits())
    """Where it came from."""


TelemetryEvent: TypeAlias = SessionStartEvent | SessionEndEvent | UnhandledExceptionEvent | GenericEvent
"""
Something that happened in a client.
"""


@define
class UnloadModelRequest(Strict):
    """Forgets a model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=fits())
    """The model."""
    type: Literal["unload_model"] = field(default="unload_model", validator=fits())
    """Tag of the request."""


@define
class UnloadModelResponse(Open):
    """Result of unload_model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID
    """The model that is gone."""
    type: Literal["unload_model"] | None = field(default=None)
    """Tag of the result."""


FutureRetrieveResponse: TypeAlias = (
    TryAgainResponse
    | RequestFailedResponse
    | CompleteMetadataResponse
    | SampleResponse
    | ForwardBackwardOutput
    | CreateModelResponse
    | UnloadModelResponse
    | SaveWeightsResponse
    | SaveWeightsForSamplerResponse
    | SaveWeightsForSamplerResponseInternal
    | LoadWeightsResponse
    | OptimStepResponse
)
"""
A result, a failure or a wait; nothing wraps it, and which result it is the asker knows.
"""


@define
class UntypedAPIFuture(Open):
    """Queued work, whose result is fetched with retrieve_future.

    Wire: 0.1.0 and later.
    """

    request_id: RequestID
    """The work."""
    model_id: ModelID | None = field(default=None)
    """The model that the work is done on."""


@define
class ValidationErrorBody(Open):
    """Body of a 422, one item per fault.

    Wire: 0.1.0 and later.
    """

    detail: list[ValidationErrorItem]
    """All faults found."""


@define
class ValidationErrorItem(Open):
    """One fault of a request.

    Wire: 0.1.0 and later.
    """

    loc: list[LocationPart]
    """Way to the field at fault, from the outside in; starts with body, path or query."""
    msg: str
    """What is wrong with the field."""
    type: str
    """Kind of the fault, for programs."""


@define
class WeightsInfoRequest(Strict):
    """Asks of which base model and adapter saved weights are.

    Wire: 0.6.0 and later.
    """

    tinker_path: str = field(validator=fits())
    """Where the weights lie, a tinker:// path."""


@define
class WeightsInfoResponse(Open):
    """Base model and adapter of saved weights.

    Wire: 0.6.0 and later.
    """

    base_model: str
    """Name of the base model."""
    is_lora: bool
    """Whether the weights are those of an adapter."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    train_unembed: bool | None = field(default=None)
    """Whether the unembedding is adapted. (wire 0.8.1 and later)"""
    train_mlp: bool | None = field(default=None)
    """Whether the MLP layers are adapted. (wire 0.8.1 and later)"""
    train_attn: bool | None = field(default=None)
    """Whether the attention layers are adapted. (wire 0.8.1 and later)"""
