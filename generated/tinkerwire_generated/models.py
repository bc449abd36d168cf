# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Every type of the wire, of all its versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.compat.dataclass_methods import DataclassMethods
from tinkerwire_base.mixins import (
    CheckpointPathMixin,
    DatumMixin,
    DmelChunkMixin,
    EncodedTextChunkMixin,
    ErrorCategoryMixin,
    ImageAssetMixin,
    ImageBytesMixin,
    LossConfigMixin,
    ModelInputMixin,
    SampledSequenceMixin,
    SampleResponseMixin,
    SaveSamplerWeightsMixin,
    SaveWeightsMixin,
    TensorDataMixin,
)
from tinkerwire_base.model import AllowExtra, Array, ForbidExtra, define
from tinkerwire_base.unset import UNSET, UnsetType
from tinkerwire_base.validators import (
    at_least,
    at_most,
    field_validator,
    has_size,
)

AccessScope: TypeAlias = Literal["owned", "accessible"]
"""
Only what the caller owns, or all that the caller may see.

Wire: 0.15.0 and later.
"""


@define
class AccessTokenResponse(AllowExtra):
    """Answer of the sign-in service at its end.

    Wire: 0.26.2 to before 0.29.1.
    """

    access_token: str
    """Token that creates an API key."""


@define
class AccessibleSearchOwner(ForbidExtra):
    """All sessions that the caller may see.

    Wire: 0.36.0 and later.
    """

    type: Literal["accessible"] = field(default="accessible", validator=field_validator())
    """Tag of the choice."""


@define
class ActiveSessionStatusQuery(ForbidExtra):
    """Sessions at work.

    Wire: 0.36.0 and later.
    """

    type: Literal["active"] = field(default="active", validator=field_validator())
    """Tag of the choice."""


@define
class AdamOptimizerConfig(ForbidExtra):
    """A model is trained by AdamW.

    Wire: 0.29.1 and later.
    """

    type: Literal["adamw"] = field(default="adamw", validator=field_validator())
    """Tag of the optimizer."""


@define
class AdamParams(ForbidExtra):
    """Settings of one AdamW step.

    Wire: 0.1.0 and later.
    """

    learning_rate: float = field(default=0.0001, validator=field_validator())
    """Step size."""
    beta1: float = field(default=0.9, validator=field_validator())
    """Decay per step of the mean of gradients."""
    beta2: float = field(default=0.95, validator=field_validator())
    """Decay per step of the mean of squared gradients."""
    eps: float = field(default=1e-12, validator=field_validator())
    """Added to the divisor against division by zero."""
    weight_decay: float = field(default=0.0, validator=field_validator())
    """Decay of the weights, times the step size, apart from the gradient. (wire 0.7.0 and later)"""
    grad_clip_norm: float = field(default=0.0, validator=field_validator())
    """Largest global norm that the gradient may have; 0 for no limit. (wire 0.7.0 and later)"""


@define
class ApiKeyDetails(AllowExtra):
    """Whose an API key is.

    Wire: 0.26.2 and later.
    """

    org_details: ApiKeyOrgDetails
    """The organization."""
    user_details: ApiKeyUserDetails
    """The user."""


@define
class ApiKeyOrgDetails(AllowExtra):
    """The organization of a key.

    Wire: 0.26.2 and later.
    """

    name: str
    """Its name."""


@define
class ApiKeyUserDetails(AllowExtra):
    """The user of a key.

    Wire: 0.26.2 and later.
    """

    email: str
    """Address of the user."""


@define
class AssignSessionProjectRequest(ForbidExtra):
    """Moves a session to a project.

    Wire: 0.22.7 and later.
    """

    project_id: str = field(validator=field_validator())
    """The project."""


AuditEventType: TypeAlias = Literal["all", "checkpoints", "projects", "teams", "organizations"]
"""
Kind of events of the audit log.

Wire: 0.20.0 and later.
"""


@define
class AuditLogEntry(AllowExtra):
    """One event of the audit log.

    Wire: 0.20.0 and later.

    A field that the server leaves out or garbles is None, except model_id and tinker_path.
    """

    _essential = frozenset({"model_id", "tinker_path"})

    timestamp: datetime
    """When it happened."""
    event: str
    """What happened."""
    model_id: str | None = field(default=None)
    """The model that it was done to."""
    tinker_path: str | None = field(default=None)
    """The weights that it was done to, a tinker:// path."""
    purpose: str | None = field(default=None)
    """What it was done for."""
    event_details: dict[str, Any] = field(factory=dict)
    """Details by name. (wire 0.26.2 and later)"""


@define
class AuditLogResponse(AllowExtra):
    """Events of the audit log.

    Wire: 0.20.0 and later.

    A field that the server leaves out or garbles is None, except entries.
    """

    _essential = frozenset({"entries"})

    entries: list[AuditLogEntry]
    """The events."""


@define
class AuthConfigResponse(AllowExtra):
    """How to sign in.

    Wire: 0.26.2 to before 0.29.1.
    """

    clientId: str
    """Identifies the client to the sign-in service; read under the name client_id too."""


@define
class AuthErrorResponse(AllowExtra):
    """Body of a refused call about keys.

    Wire: 0.26.2 and later.
    """

    detail: str | None = field(default=None)
    """What went wrong."""


@define
class AuthTokenRequest(ForbidExtra):
    """Asks for a token; has no fields.

    Wire: 0.18.2 and later.
    """


@define
class AuthTokenResponse(AllowExtra):
    """A short-lived token.

    Wire: 0.18.2 and later.
    """

    jwt: str
    """The token, which goes in X-API-Key in place of the key."""


@define
class BillingUsageEvent(AllowExtra):
    """Usage of one kind within one span of time.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None, except session_id.
    """

    _essential = frozenset({"session_id"})

    bucket_start: datetime
    """Start of the span."""
    bucket_end: datetime
    """End of the span, not in it."""
    event_info: BillingEventInfo
    """What was used."""
    base_model: str | None = field(default=None)
    """Name of the base model."""
    user_id: str | None = field(default=None)
    """Who used it."""
    user_name: str | None = field(default=None)
    """Name of who used it."""
    session_id: str | None = field(default=None)
    """The session."""
    project_id: str | None = field(default=None)
    """The project."""
    estimated_cost_usd: float | None = field(default=None)
    """Estimated cost in USD. (wire 0.30.4 and later)"""
    effective_rate_usd_per_million_tokens: float | None = field(default=None)
    """Price in USD per million tokens. (wire 0.30.4 and later)"""
    effective_rate_usd_per_gigabyte_month: float | None = field(default=None)
    """Price in USD per GB and month. (wire 0.30.4 and later)"""


@define
class BillingUsageResponse(AllowExtra):
    """Usage within a span of time.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None, except data.
    """

    _essential = frozenset({"data"})

    data: list[BillingUsageEvent]
    """The usage."""
    sessions: dict[str, BillingUsageSession] = field(factory=dict)
    """The sessions of the usage by identifier."""
    cost_data_through: datetime | None = field(default=None)
    """Until when costs are known. (wire 0.30.4 and later)"""


@define
class BillingUsageSession(AllowExtra):
    """What is known of a session in the usage.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values of the user."""


@define
class CancelFutureRequest(ForbidExtra):
    """Says that nobody waits for a sample.

    Wire: 0.26.2 and later.
    """

    request_id: str = field(validator=field_validator())
    """The work."""


@define
class CancelledSessionStatusQuery(ForbidExtra):
    """Sessions that were cancelled.

    Wire: 0.36.0 and later.
    """

    type: Literal["cancelled"] = field(default="cancelled", validator=field_validator())
    """Tag of the choice."""


@define
class Checkpoint(AllowExtra):
    """Saved weights.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except checkpoint_id and tinker_path.
    """

    _essential = frozenset({"checkpoint_id", "tinker_path"})

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
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values that it was saved with. (wire 0.26.2 and later)"""


@define
class CheckpointArchiveUrlResponse(AllowExtra):
    """Address of a checkpoint as one archive.

    Wire: 0.2.0 to before 0.36.0.

    A field that the server leaves out or garbles is None, except url.
    """

    _essential = frozenset({"url"})

    url: str
    """The address."""
    expires: datetime
    """When the address stops working."""


@define
class CheckpointBillingEvent(AllowExtra):
    """Checkpoints saved.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    count: int
    """Number of checkpoints."""
    type: Literal["checkpoint"] = field(default="checkpoint")
    """Tag of the event."""


CheckpointType: TypeAlias = Literal["training", "sampler", "external"]
"""
What a checkpoint is for: to go on training, to sample, or to download.

Wire: 0.1.0 and later.
"""


@define
class CheckpointsListResponse(AllowExtra):
    """Checkpoints, and which page of them.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except checkpoints.
    """

    _essential = frozenset({"checkpoints"})

    checkpoints: list[Checkpoint]
    """The checkpoints."""
    cursor: Cursor | None = field(default=None)
    """Place of the page; null when these are all. (wire 0.4.0 and later)"""


@define
class ClientConfigRequest(ForbidExtra):
    """Asks for the settings of a client.

    Wire: 0.18.2 and later.
    """

    sdk_version: str = field(validator=field_validator())
    """Wire version that the client speaks, for example 0.38.0."""


@define
class ClientConfigResponse(AllowExtra):
    """What the server wants of a client, fixed for its life; all may be left out.

    Wire: 0.18.2 and later.
    """

    pjwt_auth_enabled: bool = field(default=False)
    """Whether the key must be exchanged at auth/token for a JWT."""
    credential_default_source: str = field(default="api_key")
    """Where credentials come from, api_key or credential_cmd."""
    sample_dispatch_bytes_semaphore_size: int = field(default=10485760)
    """Most bytes of samples being asked for at once."""
    inflight_response_bytes_semaphore_size: int = field(default=52428800)
    """Most bytes of results being fetched at once."""
    parallel_fwdbwd_chunks: bool = field(default=True)
    """Whether the chunks of one forward_backward go out at once."""
    proto_write_fwdbwd: bool = field(default=False, metadata={"until": "0.25.0"})
    """Whether the body of forward_backward is protobuf. (wire 0.19.0 to before 0.25.0)"""
    billing_exception_max_pause_duration_sec: int = field(default=3600)
    """Seconds for which a 402 is waited out. (wire 0.20.0 and later)"""
    grpc_target: str | None = field(default=None, metadata={"until": "0.22.7"})
    """Where to poll futures by gRPC; null for nowhere. (wire 0.21.0 to before 0.22.7)"""
    enable_grpc_retrieve_future: bool = field(default=False, metadata={"until": "0.22.7"})
    """Whether futures are polled by gRPC. (wire 0.21.0 to before 0.22.7)"""
    sample_no_retries: bool = field(default=False)
    """Whether samples that fail are not asked for again. (wire 0.21.0 and later)"""
    proto_compress_fwdbwd: bool = field(default=False)
    """Whether the protobuf body of forward_backward is compressed by zstd. (wire 0.22.7 and later)"""
    fwd_via_fwdbwd: bool = field(default=False, metadata={"until": "0.25.0"})
    """Whether forward goes through forward_backward with forward_only. (wire 0.22.7 to before 0.25.0)"""
    sample_enable_stuck_detection: bool = field(default=True)
    """Whether samples without progress are given up. (wire 0.22.7 and later)"""
    sample_max_concurrent_requests: int = field(default=2000)
    """Most samples waited for at once. (wire 0.22.7 and later)"""
    use_pyqwest_transport: bool = field(default=True)
    """Whether the official client sends by pyqwest rather than httpx. (wire 0.22.7 and later)"""
    create_model_via_load_weights: bool = field(default=False, metadata={"until": "0.38.0"})
    """Whether a model is created from saved weights by load_weights alone. (wire 0.24.1 to before 0.38.0)"""
    fwdbwd_max_chunk_len: int = field(default=1024)
    """Most datums of one forward_backward. (wire 0.25.0 and later)"""
    fwdbwd_max_chunk_bytes_count: int = field(default=5000000)
    """Most bytes of one forward_backward. (wire 0.25.0 and later)"""
    fwdbwd_dispatch_bytes_semaphore_size: int = field(default=50000000)
    """Most bytes of forward_backward being sent at once. (wire 0.25.0 and later)"""
    sample_use_retrieve_futures: bool = field(default=False)
    """Whether samples are waited for by retrieve_futures. (wire 0.26.2 and later)"""
    sample_join_sampling_session: bool = field(default=False)
    """Whether copies of a sampling client ask join_sampling_session for their number. (wire 0.32.0 and later)"""
    custom_loss_server_side: bool = field(default=False)
    """Whether the server computes custom losses. (wire 0.36.0 and later)"""


@define
class ClientDynamicConfigResponse(AllowExtra):
    """Settings that may change while a client lives.

    Wire: 0.25.0 and later.
    """

    refresh_interval_sec: int = field(default=300)
    """Seconds until they are to be asked for again; clients wait at least 10."""
    sample_cancel_enabled: bool = field(default=False)
    """Whether samples that nobody waits for are cancelled. (wire 0.26.2 and later)"""
    sample_cancel_max_batch_size: int = field(default=64)
    """Most cancellations sent at once. (wire 0.26.2 and later)"""


@define
class ClientFinishedSessionStatusQuery(ForbidExtra):
    """Sessions that their client ended.

    Wire: 0.36.0 and later.
    """

    type: Literal["client_finished"] = field(default="client_finished", validator=field_validator())
    """Tag of the choice."""
    reasons: list[ClientSessionFinishReasonType] | None = field(default=None, validator=field_validator())
    """Only those that ended so; null for all."""


@define
class ClientSessionFinishErrored(AllowExtra):
    """An exception ended the client.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    type: Literal["errored"] = field(default="errored")
    """Tag of the reason."""


@define
class ClientSessionFinishInterrupted(AllowExtra):
    """The user interrupted the client.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    type: Literal["interrupted"] = field(default="interrupted")
    """Tag of the reason."""


ClientSessionFinishReasonType: TypeAlias = Literal["success", "errored", "interrupted"]
"""
How a client ended its session.

Wire: 0.36.0 and later.
"""


@define
class ClientSessionFinishSuccess(AllowExtra):
    """The client was done.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    type: Literal["success"] = field(default="success")
    """Tag of the reason."""


ClientSessionFinishReason: TypeAlias = (
    ClientSessionFinishSuccess | ClientSessionFinishErrored | ClientSessionFinishInterrupted
)
"""
How a client ended its session.

Wire: 0.36.0 and later.
"""


@define
class ClientSessionFinished(AllowExtra):
    """Its client ended the session.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    reason: ClientSessionFinishReason
    """How."""
    type: Literal["client_finished"] = field(default="client_finished")
    """Tag of the status."""
    detail: str | None = field(default=None)
    """More on it, in words."""


@define
class CompleteMetadataResponse(AllowExtra):
    """The result is there and this large; the next poll fetches it with allow_metadata_only off.

    Wire: 0.14.0 and later.
    """

    status: Literal["complete_metadata"] = field(default="complete_metadata")
    """Tag of the answer."""
    response_payload_size: int
    """Size of the result in bytes."""


@define
class ComputeLogprobsResponse(AllowExtra):
    """Logprobs of a prompt; no call gives it.

    Wire: 0.1.0 to before 0.2.0.
    """

    logprobs: list[float | None]
    """Logprob (nats) of each token; null where there is none."""
    type: Literal["compute_logprobs"] = field(default="compute_logprobs")
    """Tag of the result."""


@define
class CopyWeightsRequest(ForbidExtra):
    """Copies saved weights of somebody else into a project.

    Wire: 0.26.2 and later.
    """

    source_path: str = field(validator=field_validator())
    """Where the weights lie, a tinker:// path."""
    session_id: str | None = field(default=None, validator=field_validator())
    """The session that the copy belongs to."""
    model_seq_id: int | None = field(default=None, validator=field_validator())
    """Count of the session's models, from 0."""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the copy is deleted; null keeps it."""
    weights_access_token: str | None = field(default=None, validator=field_validator())
    """Token of their owner; since wire 0.34.0 clients send it as a header."""
    destination_project_id: str | None = field(default=None, validator=field_validator())
    """Project that the copy belongs to. (wire 0.34.0 and later)"""


@define
class CopyWeightsResponse(AllowExtra):
    """The copy.

    Wire: 0.26.2 and later.
    """

    tinker_path: str
    """Where it lies, a tinker:// path."""


@define
class CreateApiKeyRequest(ForbidExtra):
    """Creates an API key for the user who signed in.

    Wire: 0.26.2 to before 0.29.1.
    """

    name: str = field(validator=field_validator())
    """Name of the key."""
    note: str = field(validator=field_validator())
    """Note of the user on the key."""


@define
class CreateCustomLossRequest(ForbidExtra):
    """Hands over a loss that the server is to compute.

    Wire: 0.36.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session that the loss belongs to."""
    custom_loss_seq_id: int = field(validator=field_validator())
    """Count of the session's custom losses, from 0."""
    name: str = field(validator=field_validator())
    """Name of the loss."""
    inputs: list[CustomLossInput] = field(validator=field_validator())
    """Its inputs, at most 16; the first is logprobs."""
    graph: CustomLossGraph = field(validator=field_validator())
    """How it is computed."""
    type: Literal["create_custom_loss"] = field(default="create_custom_loss", validator=field_validator())
    """Tag of the request."""


@define
class CreateCustomLossResponse(AllowExtra):
    """Result of create_custom_loss.

    Wire: 0.36.0 and later.
    """

    loss_id: str
    """The loss, named by loss_id in the loss_fn_config of loss custom."""
    type: Literal["create_custom_loss"] = field(default="create_custom_loss")
    """Tag of the result."""


@define
class CreateModelRequest(ForbidExtra):
    """Creates a model to train.

    Wire: 0.1.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session that the model belongs to. (wire 0.3.0 and later)"""
    model_seq_id: int = field(validator=field_validator())
    """Count of the session's models, from 0. (wire 0.3.0 and later)"""
    base_model: str = field(validator=field_validator())
    """Name of the base model."""
    user_metadata: dict[str, Any] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the training run. (wire 0.2.0 and later)"""
    lora_config: LoraConfig | None = field(default=None, validator=field_validator())
    """The adapter; null trains the whole model."""
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig, validator=field_validator())
    """How the model is trained. (wire 0.29.1 and later)"""
    type: Literal["create_model"] = field(default="create_model", validator=field_validator())
    """Tag of the request."""


@define
class CreateModelResponse(AllowExtra):
    """Result of create_model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID
    """The new model."""
    type: Literal["create_model"] = field(default="create_model")
    """Tag of the result."""


@define
class CreateSamplingSessionRequest(ForbidExtra):
    """Opens a sampling session, on base_model or on model_path.

    Wire: 0.3.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session that it belongs to."""
    sampling_session_seq_id: int = field(validator=field_validator())
    """Count of the session's sampling sessions, from 0."""
    base_model: str | None = field(default=None, validator=field_validator())
    """Name of the base model to sample from."""
    model_path: str | None = field(default=None, validator=field_validator())
    """Where the weights to sample from lie, a tinker:// path."""
    type: Literal["create_sampling_session"] = field(default="create_sampling_session", validator=field_validator())
    """Tag of the request."""


@define
class CreateSamplingSessionResponse(AllowExtra):
    """The open sampling session.

    Wire: 0.3.0 and later.
    """

    sampling_session_id: str
    """Identifies the sampling session in later requests."""
    type: Literal["create_sampling_session"] = field(default="create_sampling_session")
    """Tag of the response."""


@define
class CreateSessionRequest(ForbidExtra):
    """Opens a session.

    Wire: 0.3.0 and later.
    """

    tags: list[str] = field(validator=field_validator())
    """Free words to find the session by."""
    user_metadata: dict[str, Any] | None = field(validator=field_validator())
    """Free keys and values of the user; null is allowed, leaving it out is not."""
    sdk_version: str = field(validator=field_validator())
    """Wire version that the client speaks, for example 0.16.1."""
    project_id: str | None = field(default=None, validator=field_validator())
    """Project that the session belongs to; null for the default one. (wire 0.15.0 and later)"""
    display_name: str | None = field(default=None, validator=field_validator())
    """Name of the session for people. (wire 0.34.0 and later)"""
    type: Literal["create_session"] = field(default="create_session", validator=field_validator())
    """Tag of the request."""


@define
class CreateSessionResponse(AllowExtra):
    """The open session, with notes that clients log.

    Wire: 0.3.0 and later.

    A field that the server leaves out or garbles is None, except session_id.
    """

    _essential = frozenset({"session_id"})

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
class CreatedApiKey(AllowExtra):
    """A new API key.

    Wire: 0.26.2 to before 0.29.1.
    """

    api_key: str
    """The key itself, shown only here."""
    id: int
    """Number of the key."""
    details: ApiKeyDetails
    """Whose the key is."""


@define
class CurrentCheckpointStorageUsageItem(AllowExtra):
    """Storage of checkpoints of one user in one project.

    Wire: 0.32.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    checkpoint_count: int
    """Number of checkpoints."""
    size_bytes: int
    """Size in bytes."""
    size_gigabytes: float
    """Size in GB."""
    project_id: str | None = field(default=None)
    """The project."""
    org_user_urn: str | None = field(default=None)
    """The user."""
    user_email: str | None = field(default=None)
    """Address of the user."""
    user_name: str | None = field(default=None)
    """Name of the user."""
    estimated_monthly_cost_usd: float | None = field(default=None)
    """Estimated cost in USD per month."""


@define
class CurrentCheckpointStorageUsageResponse(AllowExtra):
    """Storage that checkpoints take now.

    Wire: 0.32.0 and later.

    A field that the server leaves out or garbles is None, except data.
    """

    _essential = frozenset({"data"})

    data: list[CurrentCheckpointStorageUsageItem]
    """One entry per user and project."""
    effective_rate_usd_per_gigabyte_month: float | None = field(default=None)
    """Price in USD per GB and month."""


@define
class Cursor(AllowExtra):
    """Place of a page in the whole list.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    offset: int
    """Entries before the page."""
    limit: int
    """Most entries of the page."""
    total_count: int
    """Entries of the whole list."""


@define
class CustomLossGraph(ForbidExtra):
    """A computation, as steps in order.

    Wire: 0.36.0 and later.
    """

    nodes: list[CustomLossNode] = field(validator=field_validator())
    """The steps."""
    format: Literal[1] = field(default=1, validator=field_validator())
    """Version of the form."""


@define
class CustomLossInput(ForbidExtra):
    """An input of a custom loss.

    Wire: 0.36.0 and later.
    """

    name: str = field(validator=field_validator())
    """Its name."""
    rank: CustomLossInputRank = field(validator=field_validator())
    """Its number of dimensions."""


CustomLossInputRank: TypeAlias = Literal[0, 1, 2]
"""
Number of dimensions of an input.

Wire: 0.36.0 and later.
"""


@define
class CustomLossNode(ForbidExtra):
    """One step of a computation.

    Wire: 0.36.0 and later.
    """

    op: CustomLossNodeOp = field(validator=field_validator())
    """Kind of the step."""
    name: str = field(validator=field_validator())
    """Name of its value."""
    target: str = field(validator=field_validator())
    """What is called or read."""
    args: list[Any] = field(factory=list, validator=field_validator())
    """Values by place; references, tuples, slices and the like are objects of one key."""
    kwargs: dict[str, Any] = field(factory=dict, validator=field_validator())
    """Values by name."""


CustomLossNodeOp: TypeAlias = Literal[
    "placeholder", "get_attr", "call_function", "call_method", "call_module", "output"
]
"""
Kind of a step, as torch.fx names it.

Wire: 0.36.0 and later.
"""


@define(kw_only=False)
class Datum(DatumMixin, DataclassMethods, ForbidExtra):
    """One training example: an input and what its loss needs.

    Wire: 0.1.0 and later.
    """

    model_input: ModelInput = field(validator=field_validator())
    """Input of the model."""
    loss_fn_inputs: LossFnInputs
    """Tensors of the loss."""
    model_input_spans: ProvenanceSpans | None = field(
        default=None, validator=field_validator(), metadata={"protobuf_only": True}
    )
    """Where the tokens of the input come from, runs in order that cover all of them. (wire 0.26.2 and later)"""
    loss_fn_input_spans: ProvenanceSpans | None = field(
        default=None, validator=field_validator(), metadata={"protobuf_only": True}
    )
    """Where the tokens of target_tokens come from, runs in order that cover all of them. (wire 0.26.2 and later)"""


@define
class DatumParam(ForbidExtra):
    """One training example: an input and what its loss needs.

    Wire: 0.1.0 to before 0.3.0.
    """

    loss_fn_inputs: LossFnInputsParam
    """Tensors of the loss."""
    model_input: ModelInputParam
    """Input of the model."""


@define
class DeviceAuthorizationResponse(AllowExtra):
    """Answer of the sign-in service, a third party whose calls the contract leaves out.

    Wire: 0.26.2 to before 0.29.1.
    """

    device_code: str
    """Identifies the sign-in to the service."""
    user_code: str
    """What the user types in."""
    verification_uri: str
    """Where the user types it in."""
    expires_in: float
    """Seconds until the sign-in is void."""
    verification_uri_complete: str | None = field(default=None)
    """The same with the code in it."""
    interval: float | None = field(default=None)
    """Seconds between two polls."""


@define
class DimuonOptimizerConfig(ForbidExtra):
    """A model is trained by Dimuon.

    Wire: 0.29.1 and later.
    """

    type: Literal["dimuon"] = field(default="dimuon", validator=field_validator())
    """Tag of the optimizer."""
    version: Literal[1] = field(default=1, validator=field_validator())
    """Version of the optimizer."""


@define
class DimuonParams(ForbidExtra):
    """Settings of one Dimuon step.

    Wire: 0.29.1 and later.
    """

    learning_rate: float = field(validator=field_validator(at_least(0.0)))
    """Step size."""
    type: Literal["dimuon"] = field(default="dimuon", validator=field_validator())
    """Tag of the optimizer."""
    grad_clip_norm: float = field(default=0.0, validator=field_validator())
    """Largest global norm that the gradient may have; 0 for no limit."""
    beta1: float = field(
        default=0.9,
        validator=field_validator(at_least(0.0), at_most(1.0, exclusive=True)),
    )
    """Decay per step of the mean of gradients."""
    damping: float = field(
        default=0.0001,
        validator=field_validator(at_least(0.0, exclusive=True)),
        metadata={"until": "0.30.4"},
    )
    """Damping of the step. (wire to before 0.30.4)"""
    rank_lr_correction_exponent: float = field(default=0.175, validator=field_validator(), metadata={"until": "0.30.4"})
    """Power of the adapter rank that the step size is corrected by. (wire to before 0.30.4)"""


@define
class DmelChunk(DmelChunkMixin, ForbidExtra):
    """A piece of input as a tensor in a container of its own.

    Wire: 0.23.4 and later.
    """

    dmel: bytes
    """Bytes of the container, in base64; its first dimension is the number of tokens."""
    type: Literal["dmel"] = field(default="dmel", validator=field_validator())
    """Tag of the chunk."""


@define
class EncodedTextChunk(EncodedTextChunkMixin, ForbidExtra):
    """A run of text as token ids.

    Wire: 0.1.0 and later.
    """

    tokens: Sequence[int] | Array
    """Token ids in order."""
    type: Literal["encoded_text"] = field(default="encoded_text", validator=field_validator())
    """Tag of the chunk; clients of wire 0.3.0 to 0.16.1 leave it out."""


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
class ErrorBody(AllowExtra):
    """Body of a failed request; servers differ in it, so nothing is required.

    Wire: 0.1.0 and later.
    """

    detail: Any | UnsetType = field(default=UNSET)
    """What went wrong: mostly a sentence, sometimes a structure."""


@define
class ErrorResponse(AllowExtra):
    """An error; no call gives it.

    Wire: 0.1.0 to before 0.2.0.
    """

    error: str
    """Name of the error."""
    message: str
    """What went wrong, in words."""
    details: dict[str, Any] | None = field(default=None)
    """More on it, by name."""


EventType: TypeAlias = Literal["SESSION_START", "SESSION_END", "UNHANDLED_EXCEPTION", "GENERIC_EVENT"]
"""
Kind of an event.

Wire: 0.1.0 and later.
"""


@define
class ExternalWeightsUrlsResponse(AllowExtra):
    """Addresses of the files of saved weights.

    Wire: 0.28.1 and later.

    A field that the server leaves out or garbles is None, except urls.
    """

    _essential = frozenset({"urls"})

    urls: dict[str, str]
    """Address of each file, by name."""
    expires: datetime
    """When the addresses stop working."""


@define
class FailedSessionStatusQuery(ForbidExtra):
    """Sessions that failed.

    Wire: 0.36.0 and later.
    """

    type: Literal["failed"] = field(default="failed", validator=field_validator())
    """Tag of the choice."""


@define
class FinishSessionRequest(ForbidExtra):
    """Says that a client is done with its session.

    Wire: 0.27.2 and later.
    """

    reason: SessionFinishReason = field(validator=field_validator())
    """Why."""
    detail: str | None = field(validator=field_validator())
    """More on it, in words; null is sent as such."""


@define(kw_only=False)
class ForwardBackwardInput(LossConfigMixin, DataclassMethods, ForbidExtra):
    """Datums and the loss to compute on them.

    Wire: 0.1.0 and later.
    """

    data: list[Datum] = field(validator=field_validator())
    """The datums."""
    loss_fn: LossFnType = field(validator=field_validator())
    """The loss."""
    loss_fn_config: dict[str, LossConfigValue] | None = field(default=None)
    """What tunes the loss, by name; null for its defaults. Before wire 0.26.2 numbers only. (wire 0.3.0 and later)"""


@define
class ForwardBackwardInputParam(ForbidExtra):
    """Datums and the loss to compute on them.

    Wire: 0.1.0 to before 0.3.0.
    """

    data: list[DatumParam]
    """The datums."""
    loss_fn: LossFnType
    """The loss."""


@define(kw_only=False)
class ForwardBackwardOutput(DataclassMethods, AllowExtra):
    """Result of forward and forward_backward, as JSON; the loss itself is among the metrics.

    Wire: 0.1.0 to before 0.25.0.
    """

    loss_fn_output_type: str
    """Name of the kind of outputs."""
    loss_fn_outputs: list[LossFnOutput]
    """One map of tensors per datum, in the order of the datums."""
    metrics: dict[str, float]
    """Numbers over all datums, by name:reduction, for example loss:sum (nats)."""


@define(kw_only=False)
class ForwardBackwardRequest(DataclassMethods, ForbidExtra):
    """Computes a loss and its gradients; as JSON.

    Wire: 0.3.0 to before 0.25.0.
    """

    forward_backward_input: ForwardBackwardInput = field(validator=field_validator())
    """Datums and loss."""
    model_id: ModelID = field(validator=field_validator())
    """The model."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Place among all operations of the model, counted from 1; they run in this order."""


@define(kw_only=False)
class ForwardRequest(DataclassMethods, ForbidExtra):
    """Computes a loss without gradients.

    Wire: 0.3.0 to before 0.25.0.
    """

    forward_input: ForwardBackwardInput = field(validator=field_validator())
    """Datums and loss."""
    model_id: ModelID = field(validator=field_validator())
    """The model."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Place among all operations of the model, counted from 1; they run in this order."""


@define
class FutureFailed(AllowExtra):
    """A sample failed; retrieve_future fetches why.

    Wire: 0.26.2 and later.
    """

    request_id: RequestID
    """The work."""
    state: Literal["failed"] = field(default="failed")
    """Tag of the outcome."""


@define
class FutureFinished(AllowExtra):
    """A sample is there; retrieve_future fetches it.

    Wire: 0.26.2 and later.
    """

    request_id: RequestID
    """The work."""
    state: Literal["finished"] = field(default="finished")
    """Tag of the outcome."""
    response_payload_uncompressed_size: int | None = field(default=None)
    """Size of the result in bytes."""


FutureCompletion: TypeAlias = FutureFinished | FutureFailed
"""
What became of a sample.

Wire: 0.26.2 and later.
"""


@define
class FutureRetrieveParams(ForbidExtra):
    """Waits for a result.

    Wire: 0.1.0 to before 0.3.0.
    """

    request_id: RequestID
    """The work."""
    model_id: ModelID | UnsetType = field(default=UNSET)
    """The model."""


@define
class FutureRetrieveRequest(ForbidExtra):
    """Waits for a result.

    Wire: 0.3.0 and later.
    """

    request_id: RequestID = field(validator=field_validator())
    """The work."""
    allow_metadata_only: bool = field(default=False, validator=field_validator())
    """Whether the server may answer with the size of a result in its place. (wire 0.14.0 and later)"""


@define
class FuturesRetrieveRequest(ForbidExtra):
    """Waits for any of the samples of a sampling session.

    Wire: 0.26.2 and later.
    """

    target: SamplingSessionFuturesTarget = field(validator=field_validator())
    """Whose samples."""
    prev_cursor: int = field(default=0, validator=field_validator())
    """Cursor of the last answer, which says that it arrived."""
    timeout: float | None = field(default=None, validator=field_validator())
    """Seconds that the server may hold the request; null leaves it to the server, 0 only acknowledges."""
    retrieved_request_ids: list[str] = field(factory=list, validator=field_validator())
    """Samples whose results were fetched. (wire 0.36.0 and later)"""


@define
class FuturesRetrieveResponse(AllowExtra):
    """Samples that are there since the last answer.

    Wire: 0.26.2 and later.
    """

    completions: list[FutureCompletion]
    """What became of each."""
    cursor: int
    """Place in the order of completions, given back as prev_cursor."""


@define
class GeneratedKey(AllowExtra):
    """An API key that a sign-in made, as kept in the credentials file.

    Wire: 0.26.2 and later.
    """

    key: str
    """The key itself."""
    name: str
    """Name of the key."""
    details: ApiKeyDetails
    """Whose the key is."""
    type: Literal["generated"] = field(default="generated")
    """Tag of the record."""


@define
class GenericEvent(AllowExtra):
    """Anything else.

    Wire: 0.1.0 and later.
    """

    event: Literal["GENERIC_EVENT"] = field(default="GENERIC_EVENT", validator=field_validator())
    """Kind of the event, one of EventType."""
    event_id: str = field(validator=field_validator())
    """Identifies the event, a UUID."""
    event_session_index: int = field(validator=field_validator())
    """Count of the session's events, from 0."""
    severity: Severity = field(validator=field_validator())
    """How grave it is."""
    timestamp: datetime = field(validator=field_validator())
    """When it happened."""
    event_name: str = field(validator=field_validator())
    """Name of what happened."""
    event_data: dict[str, Any] = field(factory=dict, validator=field_validator())
    """Details by name."""


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
    """Name of what happened."""
    event_session_index: int
    """Count of the session's events, from 0."""
    severity: Severity
    """How grave it is."""
    timestamp: datetime
    """When it happened."""
    event_data: dict[str, Any] | UnsetType = field(default=UNSET)
    """Details by name."""


@define
class GetBillingUsageRequest(ForbidExtra):
    """Span of time of the usage; its fields are sent as query parameters.

    Wire: 0.23.4 and later.
    """

    starting_on: datetime
    """Start of the span."""
    ending_before: datetime
    """End of the span, not in it."""


@define
class GetCurrentCheckpointStorageUsageRequest(ForbidExtra):
    """Which storage is meant; its fields are sent as query parameters.

    Wire: 0.32.0 and later.
    """

    project_id: str | None = field(default=None)
    """Only this project; null for all."""


@define
class GetInfoRequest(ForbidExtra):
    """Asks what a model is.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    type: Literal["get_info"] = field(default="get_info", validator=field_validator())
    """Tag of the request."""


@define
class GetInfoResponse(AllowExtra):
    """What a model is.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except model_data and model_id.
    """

    _essential = frozenset({"model_data", "model_id"})

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
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig)
    """How the model is trained. (wire 0.29.1 and later)"""


@define
class GetSamplerResponse(AllowExtra):
    """Base model and weights of a sampler.

    Wire: 0.6.0 and later.

    A field that the server leaves out or garbles is None, except sampler_id and model_path.
    """

    _essential = frozenset({"sampler_id", "model_path"})

    sampler_id: str
    """The sampler."""
    base_model: str
    """Name of its base model."""
    model_path: str | None = field(default=None)
    """Where its weights lie, a tinker:// path; null for the base model itself."""


@define
class GetServerCapabilitiesResponse(AllowExtra):
    """The base models of the server.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except supported_models.
    """

    _essential = frozenset({"supported_models"})

    supported_models: list[SupportedModel]
    """One entry per base model."""


@define
class GetSessionResponse(AllowExtra):
    """What was created under a session.

    Wire: 0.5.1 and later.

    A field that the server leaves out or garbles is None, except training_run_ids and sampler_ids.
    """

    _essential = frozenset({"training_run_ids", "sampler_ids"})

    training_run_ids: list[ModelID]
    """Models trained under the session."""
    sampler_ids: list[str]
    """Samplers opened under the session."""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values that create_session was given. (wire 0.30.4 and later)"""
    display_name: str | None = field(default=None)
    """Name of the session for people. (wire 0.34.0 and later)"""


@define
class HealthResponse(AllowExtra):
    """Answer of a server that is up.

    Wire: 0.1.0 and later.
    """

    status: Literal["ok"] = field(default="ok")
    """Always "ok"."""


@define
class ImageAssetPointerChunk(ImageAssetMixin, ForbidExtra):
    """An image that the server fetches from where it is stored.

    Wire: 0.1.0 and later.
    """

    location: str = field(validator=field_validator())
    """Where the image is stored."""
    format: ImageFormat = field(validator=field_validator())
    """Encoding of the stored image."""
    height: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Height in pixels. (wire 0.1.0 to before 0.6.0)"""
    width: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Width in pixels. (wire 0.1.0 to before 0.6.0)"""
    tokens: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Number of tokens that the image takes in the input. (wire 0.1.0 to before 0.6.0)"""
    expected_tokens: int | None = field(default=None, validator=field_validator())
    """Number of tokens that the image is expected to take; null leaves it to the server. (wire 0.6.0 and later)"""
    type: Literal["image_asset_pointer"] = field(default="image_asset_pointer", validator=field_validator())
    """Tag of the chunk."""


@define
class ImageAssetPointerChunkParam(ForbidExtra):
    """An image that the server fetches from where it is stored.

    Wire: 0.1.0 to before 0.3.0.
    """

    format: ImageFormat = field(validator=field_validator())
    """Encoding of the stored image."""
    height: int = field(validator=field_validator())
    """Height in pixels."""
    location: str = field(validator=field_validator())
    """Where the image is stored."""
    tokens: int = field(validator=field_validator())
    """Number of tokens that the image takes in the input."""
    type: Literal["image_asset_pointer"] = field(default="image_asset_pointer", validator=field_validator())
    """Tag of the chunk."""
    width: int = field(validator=field_validator())
    """Width in pixels."""


@define
class ImageChunk(ImageBytesMixin, ForbidExtra):
    """An image, sent in the request.

    Wire: 0.3.0 and later.
    """

    data: bytes
    """Bytes of the image file, in base64."""
    format: ImageFormat = field(validator=field_validator())
    """Encoding of the bytes."""
    height: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Height in pixels. (wire 0.3.0 to before 0.6.0)"""
    width: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Width in pixels. (wire 0.3.0 to before 0.6.0)"""
    tokens: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Number of tokens that the image takes in the input. (wire 0.3.0 to before 0.6.0)"""
    expected_tokens: int | None = field(default=None, validator=field_validator())
    """Number of tokens that the image is expected to take; null leaves it to the server. (wire 0.6.0 and later)"""
    type: Literal["image"] = field(default="image", validator=field_validator())
    """Tag of the chunk."""


ImageFormat: TypeAlias = Literal["png", "jpeg"]
"""
Encoding of an image.

Wire: 0.1.0 and later.
"""


@define
class JoinSamplingSessionRequest(ForbidExtra):
    """Asks for the number of a copy of a sampling client.

    Wire: 0.32.0 and later.
    """

    sampling_session_id: str = field(validator=field_validator())
    """The sampling session."""
    type: Literal["join_sampling_session"] = field(default="join_sampling_session", validator=field_validator())
    """Tag of the request."""


@define
class JoinSamplingSessionResponse(AllowExtra):
    """The number of a copy of a sampling client.

    Wire: 0.32.0 and later.
    """

    client_counter: int
    """The number; the copy counts seq_id from it times 1,000,000,000."""
    type: Literal["join_sampling_session"] = field(default="join_sampling_session")
    """Tag of the response."""


@define
class ListSessionsResponse(AllowExtra):
    """One page of sessions.

    Wire: 0.5.1 and later.

    A field that the server leaves out or garbles is None, except sessions.
    """

    _essential = frozenset({"sessions"})

    sessions: list[str]
    """Identifiers of the sessions."""


@define
class LoadWeightsRequest(ForbidExtra):
    """Loads saved weights into a model, or into a new one that session_id and model_seq_id name.

    Wire: 0.1.0 and later.
    """

    path: str = field(validator=field_validator())
    """Where the weights lie, a tinker:// path."""
    model_id: ModelID | None = field(default=None, validator=field_validator())
    """The model; null makes a new one."""
    optimizer: bool | None = field(default=None, validator=field_validator())
    """Whether the optimizer state is loaded too. (wire 0.6.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Place among all operations of the model, counted from 1; they run in this order. (wire 0.3.0 and later)"""
    weights_access_token: str | None = field(default=None, validator=field_validator())
    """Token of the owner of the weights; null for one's own. (wire 0.18.2 and later)"""
    session_id: str | None = field(default=None, validator=field_validator())
    """The session that a new model belongs to. (wire 0.24.1 and later)"""
    model_seq_id: int | None = field(default=None, validator=field_validator())
    """Count of the session's models, from 0, for a new model. (wire 0.24.1 and later)"""
    base_model: str | None = field(default=None, validator=field_validator())
    """Name of the base model of a new model; null for that of the weights. (wire 0.24.1 and later)"""
    user_metadata: dict[str, Any] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the training run of a new model. (wire 0.24.1 and later)"""
    optimizer_config: OptimizerConfig | None = field(default=None, validator=field_validator())
    """How a new model is trained; null for AdamW. (wire 0.29.1 and later)"""
    type: Literal["load_weights"] = field(default="load_weights", validator=field_validator())
    """Tag of the request."""


@define
class LoadWeightsResponse(AllowExtra):
    """Result of load_weights.

    Wire: 0.1.0 and later.
    """

    path: str | None = field(default=None)
    """What was loaded, a tinker:// path."""
    model_id: str | None = field(default=None)
    """The model. (wire 0.24.1 and later)"""
    type: Literal["load_weights"] | None = field(default=None)
    """Tag of the result."""


LocationPart: TypeAlias = str | int
"""
One step of the way to a field, a name or an index.

Wire: 0.1.0 and later.
"""


@define
class LoraConfig(ForbidExtra):
    """Size and places of a LoRA adapter.

    Wire: 0.1.0 and later.
    """

    rank: int = field(validator=field_validator())
    """Inner dimension of the adapter."""
    seed: int | None = field(default=None, validator=field_validator())
    """Seed of its first weights; null draws one."""
    train_unembed: bool = field(default=True, validator=field_validator())
    """Whether the unembedding is adapted."""
    train_mlp: bool = field(default=True, validator=field_validator())
    """Whether the MLP layers are adapted."""
    train_attn: bool = field(default=True, validator=field_validator())
    """Whether the attention layers are adapted."""


@define
class LoraConfigParam(ForbidExtra):
    """Size and places of a LoRA adapter.

    Wire: 0.1.0 to before 0.3.0.
    """

    rank: int
    """Inner dimension of the adapter."""
    seed: int | UnsetType | None = field(default=UNSET)
    """Seed of its first weights; null draws one."""
    train_unembed: bool | UnsetType | None = field(default=UNSET)
    """Whether the unembedding is adapted."""
    train_mlp: bool | UnsetType | None = field(default=UNSET)
    """Whether the MLP layers are adapted."""
    train_attn: bool | UnsetType | None = field(default=UNSET)
    """Whether the attention layers are adapted."""


LossConfigValue: TypeAlias = float | str
"""
A setting of a loss.

Wire: 0.26.2 and later.
"""


LossFnType: TypeAlias = Literal[
    "cross_entropy",
    "importance_sampling",
    "ppo",
    "cispo",
    "dro",
    "gspo",
    "stable_reinforce",
    "custom",
]
"""
A loss that the server computes.

Wire: 0.1.0 and later.
"""


@define
class ManualKey(AllowExtra):
    """An API key that the user typed in, as kept in the credentials file.

    Wire: 0.26.2 and later.
    """

    key: str
    """The key itself."""
    name: str
    """Name of the key."""
    type: Literal["manual"] = field(default="manual")
    """Tag of the record."""
    note: str | None = field(default=None)
    """Note of the user."""
    details: ApiKeyDetails | None = field(default=None)
    """Whose the key is."""


KeyRecordV1: TypeAlias = ManualKey | GeneratedKey
"""
An API key in the credentials file.

Wire: 0.26.2 and later.
"""


@define
class ModelCreateParams(ForbidExtra):
    """Creates a model to train.

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
class ModelData(AllowExtra):
    """Names that belong to a model.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except model_name and tokenizer_id.
    """

    _essential = frozenset({"model_name", "tokenizer_id"})

    arch: str | None = field(default=None)
    """Name of its architecture."""
    model_name: str | None = field(default=None)
    """Name of its base model."""
    tokenizer_id: str | None = field(default=None)
    """Name of its tokenizer; what follows a colon is no part of it. (wire 0.3.0 and later)"""


@define
class ModelGetInfoParams(ForbidExtra):
    """Asks what a model is.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    type: Literal["get_info"] = field(default="get_info")
    """Tag of the request."""


ModelID: TypeAlias = str
"""
Identifies a model under training, and its training run.

Wire: 0.1.0 and later.
"""


@define
class ModelInput(ModelInputMixin, ForbidExtra):
    """The input of a model, a sequence of chunks.

    Wire: 0.1.0 and later.
    """

    chunks: list[ModelInputChunk] = field(validator=field_validator())
    """The chunks in order."""


ModelInputChunk: TypeAlias = EncodedTextChunk | ImageAssetPointerChunk | ImageChunk | DmelChunk
"""
A piece of a model's input; without a tag its keys tell which.

Wire: 0.1.0 and later.
"""


ModelInputChunkParam: TypeAlias = EncodedTextChunkParam | ImageAssetPointerChunkParam
"""
A piece of a model's input; without a tag its keys tell which.

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
    """Forgets a model.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    type: Literal["unload_model"] = field(default="unload_model")
    """Tag of the request."""


@define
class OptimParamsBase(AllowExtra):
    """Settings of one step of any optimizer.

    Wire: 0.30.4 and later.
    """

    type: str = field(validator=field_validator())
    """Name of the optimizer."""


OptimParams: TypeAlias = AdamParams | DimuonParams | OptimParamsBase
"""
Settings of one step; since wire 0.30.4 those of any optimizer.

Wire: 0.29.1 and later.
"""


@define
class OptimStepRequest(ForbidExtra):
    """Updates the weights by the gradients so far.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    adam_params: AdamParams | None = field(default=None, validator=field_validator())
    """Settings of an AdamW step; since wire 0.29.1 null when optimizer_params holds others."""
    optimizer_params: OtherOptimParams | None = field(default=None, validator=field_validator())
    """Settings of a step of another optimizer; null when adam_params holds them. (wire 0.29.1 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Place among all operations of the model, counted from 1; they run in this order. (wire 0.3.0 and later)"""
    type: Literal["optim_step"] = field(default="optim_step", validator=field_validator())
    """Tag of the request."""


@define
class OptimStepResponse(AllowExtra):
    """Result of optim_step.

    Wire: 0.1.0 and later.
    """

    metrics: dict[str, float] | None = field(default=None)
    """Numbers of the step, by name."""


@define
class OptimizerConfigBase(AllowExtra):
    """A model is trained by any optimizer, with any settings.

    Wire: 0.30.4 and later.
    """

    type: str = field(validator=field_validator())
    """Name of the optimizer."""


OptimizerConfig: TypeAlias = AdamOptimizerConfig | DimuonOptimizerConfig | OptimizerConfigBase
"""
How a model is trained; since wire 0.30.4 any optimizer may be named.

Wire: 0.29.1 and later.
"""


OtherOptimParams: TypeAlias = DimuonParams | OptimParamsBase
"""
Settings of one step of an optimizer other than AdamW.

Wire: 0.29.1 and later.
"""


@define
class OwnSearchOwner(ForbidExtra):
    """Sessions of the caller.

    Wire: 0.36.0 and later.
    """

    type: Literal["own"] = field(default="own", validator=field_validator())
    """Tag of the choice."""


@define
class ParsedCheckpointTinkerPath(CheckpointPathMixin, AllowExtra):
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


@define(kw_only=False)
class PromptAltTokens(DataclassMethods, AllowExtra):
    """Alternatives drawn at each place of a prompt but the first, as matrices with one row per place.

    Wire: 0.31.0 and later.
    """

    tokens: TensorData
    """Token ids (int64)."""
    logprobs: TensorData
    """Logprob (nats, float32) of each of them."""


@define
class PromptProvenanceSpan(DataclassMethods, ForbidExtra):
    """A run of tokens that come from the prompt of a sample.

    Wire: 0.26.2 and later.
    """

    sequence_id: str = field(validator=field_validator(has_size(1)))
    """The sample, one of sample_sequence_ids."""
    length: int = field(validator=field_validator(at_least(0)))
    """Tokens of the run."""
    offset: int = field(default=0, validator=field_validator(at_least(0)))
    """Tokens of the prompt before the run."""


QueueState: TypeAlias = Literal["active", "paused_capacity", "paused_rate_limit"]
"""
Why a result is not there: at work, or held back for lack of machines or by a rate limit.

Wire: 0.2.0 and later.
"""


RequestErrorCategory: TypeAlias = Literal["unknown", "server", "user"]
"""
Whose fault a failure is: lower case on the wire, read in any case.

Wire: 0.3.0 and later.
"""


@define
class RequestFailedResponse(ErrorCategoryMixin, AllowExtra):
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

Wire: 0.1.0 and later.
"""


@define
class SampleRequest(ForbidExtra):
    """Asks for samples after a prompt, and for logprobs of the prompt itself.

    Wire: 0.1.0 and later.
    """

    prompt: ModelInput = field(validator=field_validator())
    """What to continue."""
    sampling_params: SamplingParams = field(validator=field_validator())
    """How tokens are drawn."""
    num_samples: int = field(default=1, validator=field_validator())
    """Number of samples."""
    base_model: str | None = field(default=None, validator=field_validator())
    """Base model; without a sampling session."""
    model_path: str | None = field(default=None, validator=field_validator())
    """Where the weights lie, a tinker:// path; without a sampling session."""
    sampling_session_id: str | None = field(default=None, validator=field_validator())
    """The sampling session. (wire 0.3.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Count of the sampling session's requests, from 0. (wire 0.3.0 and later)"""
    prompt_logprobs: bool | None = field(default=None, validator=field_validator())
    """Whether to give logprobs of the prompt: true, false, or null for the server to say."""
    topk_prompt_logprobs: int = field(default=0, validator=field_validator())
    """Number of likeliest tokens to give at each place of the prompt; 0 for none. (wire 0.3.0 and later)"""
    record_stability_info: bool | None = field(default=None, validator=field_validator())
    """Whether to record data on stability; null leaves it to the server. (wire 0.26.2 and later)"""
    topk_sample_logprobs: int = field(default=0, validator=field_validator())
    """Number of likeliest tokens to give at each place of the samples; 0 for none. (wire 0.29.1 and later)"""
    target_prompt_logprobs: TensorData | None = field(default=None, validator=field_validator())
    """Token ids (int64, one row per place of the prompt but the first; -1: none) to give logprobs of; null for none. (wire 0.30.4 and later)"""
    prompt_alt_tokens_k: int = field(default=0, validator=field_validator())
    """Number of alternatives to draw at each place of the prompt but the first; 0 for none. (wire 0.31.0 and later)"""
    prompt_logprobs_last_n: int | None = field(default=None, validator=field_validator())
    """How many tokens at the end of the prompt get logprobs, at least 1; null for all. (wire 0.33.1 and later)"""
    type: Literal["sample"] = field(default="sample", validator=field_validator())
    """Tag of the request."""


@define
class SampleResponse(SampleResponseMixin, DataclassMethods, AllowExtra):
    """Result of asample; as JSON until wire 0.25.0, and as a binary message since 0.18.2.

    Wire: 0.1.0 to before 0.25.0.
    """

    sequences: list[SampledSequence]
    """The samples."""
    prompt_logprobs: list[float | None] | None = field(default=None)
    """Logprob (nats) of each token of the prompt after those before it; null for the first."""
    topk_prompt_logprobs: list[list[TokenLogprob] | None] | None = field(default=None)
    """Likeliest tokens at each place of the prompt, best first; null where there are none. (wire 0.3.0 and later)"""
    prompt_cache_hit_tokens: int = field(default=0)
    """Number of tokens of the prompt that came from the cache. (wire 0.23.4 and later)"""
    target_prompt_logprobs: TensorData | None = field(default=None, metadata={"protobuf_only": True})
    """Logprobs (nats, float32) of the tokens that target_prompt_logprobs asked for, in its shape. (wire 0.30.4 and later)"""
    prompt_alt_tokens: PromptAltTokens | None = field(default=None, metadata={"protobuf_only": True})
    """Alternatives that prompt_alt_tokens_k asked for. (wire 0.31.0 and later)"""
    type: Literal["sample"] = field(default="sample")
    """Tag of the result."""


@define
class SampledProvenanceSpan(DataclassMethods, ForbidExtra):
    """A run of tokens that come from a sample.

    Wire: 0.26.2 and later.
    """

    sequence_id: str = field(validator=field_validator(has_size(1)))
    """The sample, one of sample_sequence_ids."""
    length: int = field(validator=field_validator(at_least(0)))
    """Tokens of the run."""
    offset: int = field(default=0, validator=field_validator(at_least(0)))
    """Tokens of the sample before the run."""


ProvenanceSpan: TypeAlias = PromptProvenanceSpan | SampledProvenanceSpan
"""
Where a run of tokens comes from.

Wire: 0.26.2 and later.
"""


ProvenanceSpans: TypeAlias = list[ProvenanceSpan]
"""
Where tokens come from, run by run.

Wire: 0.26.2 and later.
"""


@define
class SampledSequence(SampledSequenceMixin, DataclassMethods, AllowExtra):
    """One sample.

    Wire: 0.1.0 to before 0.25.0.
    """

    stop_reason: StopReason | str
    """Why it ended; values to come are passed on."""
    tokens: list[int]
    """Token ids drawn."""
    logprobs: list[float] | None = field(default=None)
    """Logprob (nats) of each token drawn."""
    sequence_id: str | None = field(default=None, metadata={"protobuf_only": True})
    """The sample as provenance spans name it, one of the sample_sequence_ids of its promise. (wire 0.26.2 and later)"""
    topk_logprobs: list[list[TokenLogprob] | None] | None = field(default=None, metadata={"protobuf_only": True})
    """Likeliest tokens at each place of the sample, best first; null where there are none. (wire 0.28.1 and later)"""


@define
class SamplingAsampleParams(ForbidExtra):
    """Asks for samples after a prompt, and for logprobs of the prompt itself.

    Wire: 0.1.0 to before 0.3.0.
    """

    prompt: ModelInputParam
    """What to continue."""
    sampling_params: SamplingParamsParam
    """How tokens are drawn."""
    num_samples: int | UnsetType = field(default=UNSET)
    """Number of samples."""
    base_model: str | UnsetType = field(default=UNSET)
    """Name of the base model."""
    model_path: str | UnsetType = field(default=UNSET)
    """Where the weights lie, a tinker:// path."""
    prompt_logprobs: bool | UnsetType = field(default=UNSET)
    """Whether to give logprobs of the prompt."""
    type: Literal["sample"] = field(default="sample")
    """Tag of the request."""


SamplingClientKind: TypeAlias = Literal["snapshot", "inflight"]
"""
Kind of sampling client; inflight ones of a model all sample from what was saved last for any of them.

Wire: 0.38.0 and later.
"""


@define
class SamplingParams(AllowExtra):
    """How tokens are drawn.

    Wire: 0.1.0 and later.
    """

    max_tokens: int | None = field(default=None, validator=field_validator())
    """Most tokens to draw; null for the server's limit."""
    seed: int | None = field(default=None, validator=field_validator())
    """Seed of the draws; null for none."""
    stop: StopCondition | None = field(default=None, validator=field_validator())
    """Where to end before max_tokens; null for the model's own end only."""
    temperature: float = field(default=1, validator=field_validator())
    """Divisor of the logits; 0 always takes the likeliest."""
    top_k: int = field(default=-1, validator=field_validator())
    """Draw among so many likeliest tokens; -1 for all."""
    top_p: float = field(default=1, validator=field_validator())
    """Draw among the likeliest tokens of this total probability."""


@define
class SamplingParamsParam(ForbidExtra):
    """How tokens are drawn.

    Wire: 0.1.0 to before 0.3.0.
    """

    max_tokens: int | UnsetType | None = field(default=UNSET, validator=field_validator())
    """Most tokens to draw; null for the server's limit."""
    seed: int | UnsetType | None = field(default=UNSET, validator=field_validator())
    """Seed of the draws; null for none."""
    stop: StopCondition | UnsetType | None = field(default=UNSET, validator=field_validator())
    """Where to end before max_tokens; null for the model's own end only."""
    temperature: float | UnsetType = field(default=UNSET, validator=field_validator())
    """Divisor of the logits; 0 always takes the likeliest."""
    top_k: int | UnsetType = field(default=UNSET, validator=field_validator())
    """Draw among so many likeliest tokens; -1 for all."""
    top_p: float | UnsetType = field(default=UNSET, validator=field_validator())
    """Draw among the likeliest tokens of this total probability."""


@define
class SamplingPrefillBillingEvent(AllowExtra):
    """Tokens of prompts.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    cached: bool
    """Whether they came from the cache."""
    token_count: int
    """Number of tokens."""
    type: Literal["sampling_prefill"] = field(default="sampling_prefill")
    """Tag of the event."""


@define
class SamplingSampleBillingEvent(AllowExtra):
    """Tokens sampled.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    token_count: int
    """Number of tokens."""
    type: Literal["sampling_sample"] = field(default="sampling_sample")
    """Tag of the event."""


@define
class SamplingSampleParams(ForbidExtra):
    """Samples after a prompt, answered at once.

    Wire: 0.1.0 to before 0.3.0.
    """

    prompt: ModelInputParam = field(validator=field_validator())
    """What to continue."""
    sampling_params: SamplingParamsParam = field(validator=field_validator())
    """How tokens are drawn."""
    num_samples: int | UnsetType = field(default=UNSET, validator=field_validator())
    """Number of samples."""
    base_model: str | UnsetType = field(default=UNSET, validator=field_validator())
    """Name of the base model."""
    model_path: str | UnsetType = field(default=UNSET, validator=field_validator())
    """Where the weights lie, a tinker:// path."""
    prompt_logprobs: bool | UnsetType = field(default=UNSET, validator=field_validator())
    """Whether to give logprobs of the prompt."""
    type: Literal["sample"] = field(default="sample", validator=field_validator())
    """Tag of the request."""


@define
class SamplingSessionFuturesTarget(ForbidExtra):
    """Whose samples are waited for.

    Wire: 0.26.2 and later.
    """

    sampling_session_id: str = field(validator=field_validator())
    """The sampling session."""
    type: Literal["sampling_session"] = field(default="sampling_session", validator=field_validator())
    """Tag of the target."""
    cloned_sampler_id: int = field(default=0, validator=field_validator())
    """Number of the copy of the sampling client, 0 for the first."""


@define
class SaveWeightsExternalRequest(ForbidExtra):
    """Saves weights to download them.

    Wire: 0.28.1 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str = field(validator=field_validator())
    """Name of the checkpoint."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Place among all operations of the model, counted from 1; they run in this order."""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted; null keeps it."""
    type: Literal["save_weights_external"] = field(default="save_weights_external", validator=field_validator())
    """Tag of the request."""
    age_encryption_recipients: list[str] | None = field(default=None, validator=field_validator())
    """Public age keys that the files are encrypted for; null for none. (wire 0.33.1 and later)"""


@define
class SaveWeightsExternalResponse(AllowExtra):
    """Weights saved to download, as users see them.

    Wire: 0.28.1 and later.
    """

    path: str
    """Where it was saved, a tinker:// path."""
    type: Literal["save_weights_external"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsExternalResponseInternal(AllowExtra):
    """Result of save_weights_external.

    Wire: 0.28.1 and later.
    """

    path: str | None = field(default=None)
    """Where it was saved, a tinker:// path."""
    size_bytes: int | None = field(default=None)
    """Its size in bytes."""
    type: Literal["save_weights_external"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsForSamplerRequest(ForbidExtra):
    """Saves weights to sample from, under a name or straight into a new sampling session.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str | None = field(default=None, validator=field_validator())
    """Name of the checkpoint; left out when sampling_session_seq_id is given."""
    sampling_session_seq_id: int | None = field(default=None, validator=field_validator())
    """Count of the session's sampling sessions, from 0; opens one on these weights. (wire 0.3.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Place among all operations of the model, counted from 1; they run in this order. (wire 0.3.0 and later)"""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted; null keeps it. (wire 0.9.0 and later)"""
    user_metadata: dict[str, str] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the checkpoint. (wire 0.27.2 and later)"""
    kind: SamplingClientKind = field(default="snapshot", validator=field_validator())
    """Kind of the sampling client that is opened on them. (wire 0.38.0 and later)"""
    type: Literal["save_weights_for_sampler"] = field(default="save_weights_for_sampler", validator=field_validator())
    """Tag of the request."""


@define
class SaveWeightsForSamplerResponse(SaveSamplerWeightsMixin, AllowExtra):
    """Saved weights to sample from, as users see it.

    Wire: 0.1.0 and later.
    """

    path: str
    """Where it was saved, a tinker:// path."""
    type: Literal["save_weights_for_sampler"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsForSamplerResponseInternal(AllowExtra):
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
class SaveWeightsRequest(ForbidExtra):
    """Saves weights and optimizer state.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str | None = field(default=None, validator=field_validator())
    """Name of the checkpoint; null lets the server name it."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Place among all operations of the model, counted from 1; they run in this order. (wire 0.3.0 and later)"""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted; null keeps it. (wire 0.9.0 and later)"""
    overwrite: bool = field(default=False, validator=field_validator())
    """Whether a checkpoint of this name may be replaced. (wire 0.20.0 and later)"""
    user_metadata: dict[str, str] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the checkpoint. (wire 0.27.2 and later)"""
    type: Literal["save_weights"] = field(default="save_weights", validator=field_validator())
    """Tag of the request."""


@define
class SaveWeightsResponse(SaveWeightsMixin, AllowExtra):
    """Result of save_weights.

    Wire: 0.1.0 and later.
    """

    path: str
    """Where it was saved, a tinker:// path."""
    type: Literal["save_weights"] | None = field(default=None)
    """Tag of the result."""


@define
class SelfApiKeyResponse(AllowExtra):
    """The API key that the request was sent with.

    Wire: 0.26.2 and later.
    """

    key_id: int
    """Number of the key."""
    name: str
    """Name of the key."""
    note: str
    """Note of the user on the key."""
    details: ApiKeyDetails
    """Whose the key is."""


@define
class SessionActive(AllowExtra):
    """The session is at work.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    type: Literal["active"] = field(default="active")
    """Tag of the status."""


@define
class SessionCancelled(AllowExtra):
    """The session was cancelled.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    type: Literal["cancelled"] = field(default="cancelled")
    """Tag of the status."""
    detail: str | None = field(default=None)
    """Why, in words."""


@define
class SessionEndEvent(AllowExtra):
    """The client ended.

    Wire: 0.1.0 and later.
    """

    event: Literal["SESSION_END"] = field(default="SESSION_END", validator=field_validator())
    """Kind of the event, one of EventType."""
    event_id: str = field(validator=field_validator())
    """Identifies the event, a UUID."""
    event_session_index: int = field(validator=field_validator())
    """Count of the session's events, from 0."""
    severity: Severity = field(validator=field_validator())
    """How grave it is."""
    timestamp: datetime = field(validator=field_validator())
    """When it happened."""
    duration: str = field(validator=field_validator())
    """How long it ran, as H:MM:SS.ffffff."""


@define
class SessionEndEventParam(ForbidExtra):
    """The client ended.

    Wire: 0.1.0 to before 0.3.0.
    """

    duration: str
    """How long it ran, as H:MM:SS.ffffff."""
    event: Literal["SESSION_END"] = field(default="SESSION_END")
    """Kind of the event, one of EventType."""
    event_id: str
    """Identifies the event, a UUID."""
    event_session_index: int
    """Count of the session's events, from 0."""
    severity: Severity
    """How grave it is."""
    timestamp: datetime
    """When it happened."""


@define
class SessionFailed(AllowExtra):
    """The session failed.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    category: SessionFailureCategory | str
    """Whose fault it is; values to come are passed on."""
    reason: SessionFailedReason
    """What failed."""
    message: str
    """What went wrong, in words."""
    type: Literal["failed"] = field(default="failed")
    """Tag of the status."""


@define
class SessionFailedRequestReason(AllowExtra):
    """A request failed.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    request_id: str
    """The request."""
    request_type: str
    """What it asked for, for example ForwardBackward."""
    type: Literal["request"] = field(default="request")
    """Tag of the reason."""


@define
class SessionFailedSamplingSessionReason(AllowExtra):
    """A sampling session failed.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    sampling_session_id: str
    """The sampling session."""
    type: Literal["sampling_session"] = field(default="sampling_session")
    """Tag of the reason."""


@define
class SessionFailedTrainingRunReason(AllowExtra):
    """A training run failed.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    training_run_id: str
    """The training run."""
    type: Literal["training_run"] = field(default="training_run")
    """Tag of the reason."""


SessionFailedReason: TypeAlias = (
    SessionFailedRequestReason | SessionFailedTrainingRunReason | SessionFailedSamplingSessionReason
)
"""
What of a session failed.

Wire: 0.36.0 and later.
"""


SessionFailureCategory: TypeAlias = Literal["user", "internal"]
"""
Whose fault the failure of a session is.

Wire: 0.36.0 and later.
"""


@define
class SessionFinishReason(ForbidExtra):
    """Why a client ends its session.

    Wire: 0.27.2 and later.
    """

    type: SessionFinishStatus = field(validator=field_validator())
    """How it ends."""


SessionFinishStatus: TypeAlias = Literal["success", "errored", "interrupted"]
"""
How a client ends its session.

Wire: 0.27.2 and later.
"""


@define
class SessionHeartbeatRequest(ForbidExtra):
    """Keeps a session alive.

    Wire: 0.3.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session."""
    type: Literal["session_heartbeat"] = field(default="session_heartbeat", validator=field_validator())
    """Tag of the request."""


@define
class SessionHeartbeatResponse(AllowExtra):
    """The session lives on.

    Wire: 0.3.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    type: Literal["session_heartbeat"] = field(default="session_heartbeat")
    """Tag of the response."""


@define
class SessionSearchCursor(AllowExtra):
    """Where the next page starts.

    Wire: 0.36.0 and later.
    """

    last_created_at: datetime = field(validator=field_validator())
    """When the last session of the page was created, with its time zone."""
    last_session_id: str = field(validator=field_validator())
    """The last session of the page."""


@define
class SessionSearchRequest(ForbidExtra):
    """Looks for sessions; each condition given narrows the search.

    Wire: 0.36.0 and later.
    """

    session_id: str | None = field(default=None, validator=field_validator())
    """Only this session."""
    project_ids: list[str] | None = field(default=None, validator=field_validator())
    """Only those of these projects."""
    user_metadata: dict[str, str] = field(factory=dict, validator=field_validator())
    """Only those with these keys and values."""
    display_name: str | None = field(default=None, validator=field_validator(has_size(1)))
    """Only those with this name."""
    owner: SearchOwner = field(factory=OwnSearchOwner, validator=field_validator())
    """Whose sessions."""
    statuses: list[SessionStatusQuery] | None = field(default=None, validator=field_validator())
    """Only those with one of these statuses; null for any."""
    limit: int = field(default=50, validator=field_validator(at_least(1), at_most(200)))
    """Most sessions of the page."""
    cursor: SessionSearchCursor | None = field(default=None, validator=field_validator())
    """Start of the page; null for the first."""


@define
class SessionSearchResponse(AllowExtra):
    """One page of sessions that were found.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None, except sessions and next_cursor.
    """

    _essential = frozenset({"sessions", "next_cursor"})

    sessions: list[SessionSummary]
    """The sessions."""
    next_cursor: SessionSearchCursor | None = field(default=None)
    """Start of the next page; null when this is the last."""


@define
class SessionStartEvent(AllowExtra):
    """The client started.

    Wire: 0.1.0 and later.
    """

    event: Literal["SESSION_START"] = field(default="SESSION_START", validator=field_validator())
    """Kind of the event, one of EventType."""
    event_id: str = field(validator=field_validator())
    """Identifies the event, a UUID."""
    event_session_index: int = field(validator=field_validator())
    """Count of the session's events, from 0."""
    severity: Severity = field(validator=field_validator())
    """How grave it is."""
    timestamp: datetime = field(validator=field_validator())
    """When it happened."""


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
    """Count of the session's events, from 0."""
    severity: Severity
    """How grave it is."""
    timestamp: datetime
    """When it happened."""


SessionStatus: TypeAlias = SessionFailed | SessionCancelled | ClientSessionFinished | SessionActive
"""
How a session is.

Wire: 0.36.0 and later.
"""


SessionStatusQuery: TypeAlias = (
    ActiveSessionStatusQuery | CancelledSessionStatusQuery | FailedSessionStatusQuery | ClientFinishedSessionStatusQuery
)
"""
A status to look for.

Wire: 0.36.0 and later.
"""


@define
class SessionSummary(AllowExtra):
    """A session that was found.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None, except session_id.
    """

    _essential = frozenset({"session_id"})

    session_id: str
    """The session."""
    created_at: datetime
    """When it was created."""
    owner: str
    """Who owns it."""
    project_id: str
    """Its project."""
    checkpoints_count: int
    """Number of its checkpoints."""
    status: SessionStatus | None = field(default=None)
    """How it is; null where that is not known."""
    display_name: str | None = field(default=None)
    """Its name."""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values of the user."""
    checkpoint_storage_bytes: int | None = field(default=None)
    """Size of its checkpoints in bytes."""


@define
class SessionTraceExportPollResponse(AllowExtra):
    """How the export of a trace goes.

    Wire: 0.24.1 and later.

    A field that the server leaves out or garbles is None, except status and url.
    """

    _essential = frozenset({"status", "url"})

    status: TraceExportStatus | str
    """How it goes; values to come are passed on."""
    url: str | None = field(default=None)
    """Signed address of the trace, once it is ready."""
    error: str | None = field(default=None)
    """Why it failed."""


@define
class SetCheckpointTtlRequest(ForbidExtra):
    """Sets or lifts the time after which a checkpoint is deleted.

    Wire: 0.13.1 and later.
    """

    ttl_seconds: int | None = field(validator=field_validator())
    """Seconds from now until it is deleted; null, which is sent as such, keeps it."""


Severity: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
"""
How grave an event is.

Wire: 0.1.0 and later.
"""


StopCondition: TypeAlias = str | list[str] | list[int]
"""
Where sampling ends; a string, one of several strings, or one of several token ids.

Wire: 0.1.0 and later.
"""


StopReason: TypeAlias = Literal["length", "stop"]
"""
Why a sample ended: at max_tokens (length) or at a stop condition (stop).

Wire: 0.1.0 and later.
"""


@define
class StorageBillingEvent(AllowExtra):
    """Storage of checkpoints.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    gigabyte_hours: float
    """Size times time, in GB h."""
    type: Literal["storage"] = field(default="storage")
    """Tag of the event."""
    free: bool = field(default=False)
    """Whether it costs nothing. (wire 0.38.0 and later)"""


@define
class StoredCredentialsV1(AllowExtra):
    """The credentials file of a user; never sent.

    Wire: 0.26.2 and later.
    """

    version: Literal[1] = field(default=1)
    """Version of the form of the file."""
    default: str | None = field(default=None)
    """Key of keys that is used; null for none."""
    keys: dict[str, KeyRecordV1] = field(factory=dict)
    """API keys by identifier."""


@define
class SupportedModel(AllowExtra):
    """A base model of the server; servers add keys to it freely.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except model_name.
    """

    _essential = frozenset({"model_name"})

    model_name: str | None = field(default=None)
    """Name under which create_model and create_sampling_session know it."""
    max_context_length: int | None = field(default=None)
    """Most tokens of prompt and sample together. (wire 0.18.2 and later)"""
    trainable: bool | None = field(default=None)
    """Whether create_model takes it. (wire 0.26.2 and later)"""
    sampleable: bool | None = field(default=None)
    """Whether create_sampling_session takes it. (wire 0.26.2 and later)"""


@define
class TelemetryBatch(AllowExtra):
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
    process_uuid: str | None = field(default=None)
    """Identifies the process of the client, a UUID. (wire 0.24.1 and later)"""


@define
class TelemetryResponse(AllowExtra):
    """The events are taken.

    Wire: 0.1.0 and later.
    """

    status: Literal["accepted"] = field(default="accepted")
    """Always "accepted"."""


@define
class TelemetrySendParams(ForbidExtra):
    """Reports events of one client.

    Wire: 0.1.0 to before 0.3.0.
    """

    events: list[TelemetryEventParam]
    """The events."""
    platform: str
    """Operating system, for example Linux."""
    sdk_version: str
    """Wire version that the client speaks."""
    session_id: str
    """The session that the events belong to."""


@define
class TelemetrySendRequest(ForbidExtra):
    """Reports events of one client.

    Wire: 0.3.0 and later.
    """

    events: list[TelemetryEvent] = field(validator=field_validator())
    """The events."""
    platform: str = field(validator=field_validator())
    """Operating system, for example Linux."""
    sdk_version: str = field(validator=field_validator())
    """Wire version that the client speaks."""
    session_id: str = field(validator=field_validator())
    """The session that the events belong to."""
    process_uuid: str | None = field(default=None, validator=field_validator())
    """Identifies the process of the client, a UUID. (wire 0.24.1 and later)"""


@define(kw_only=False)
class TensorData(TensorDataMixin, DataclassMethods, ForbidExtra):
    """A tensor, its values row by row in one flat list.

    Wire: 0.1.0 and later.
    """

    data: Sequence[float] | Array
    """Flat values in row-major order; whole numbers when dtype is int64."""
    dtype: TensorDtype = field(validator=field_validator())
    """Kind of the numbers."""
    shape: list[int] | None = field(default=None, validator=field_validator())
    """Length of each dimension; null means one dimension as long as data."""
    sparse_crow_indices: Sequence[int] | Array | None = field(default=None, validator=field_validator())
    """For a sparse matrix (CSR), where each row starts in data; rows + 1 numbers. (wire 0.18.2 and later)"""
    sparse_col_indices: Sequence[int] | Array | None = field(default=None, validator=field_validator())
    """For a sparse matrix (CSR), the column of each value of data. (wire 0.18.2 and later)"""


LossFnInputs: TypeAlias = dict[str, TensorData]
"""
Tensors of a loss by name: target_tokens (int64), weights, advantages, logprobs, clip_low_threshold,
clip_high_threshold and, since wire 0.34.0, sequence_ratio_mask (float32), mostly one number per input token.

Wire: 0.1.0 and later.
"""


LossFnOutput: TypeAlias = dict[str, TensorData]
"""
Tensors that a loss gives for one datum, by name, such as logprobs (per target token).

Wire: 0.1.0 and later.
"""


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
Tensors of a loss by name: target_tokens (int64), weights, advantages, logprobs, clip_low_threshold and
clip_high_threshold (float32), mostly one number per input token.

Wire: 0.1.0 to before 0.3.0.
"""


TensorDtype: TypeAlias = Literal["int64", "float32"]
"""
Kind of the numbers in a tensor.

Wire: 0.1.0 and later.
"""


TokenLogprob: TypeAlias = tuple[int, float]
"""
A token id and its logprob (nats).

Wire: 0.3.0 and later.
"""


TraceExportStatus: TypeAlias = Literal["pending", "ready", "failed"]
"""
How the export of a trace goes.

Wire: 0.24.1 and later.
"""


@define
class TrainingBillingEvent(AllowExtra):
    """Tokens trained on.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    token_count: int
    """Number of tokens."""
    type: Literal["training"] = field(default="training")
    """Tag of the event."""


BillingEventInfo: TypeAlias = (
    TrainingBillingEvent
    | SamplingPrefillBillingEvent
    | SamplingSampleBillingEvent
    | CheckpointBillingEvent
    | StorageBillingEvent
)
"""
What was used.

Wire: 0.23.4 and later.
"""


@define
class TrainingForwardBackwardParams(ForbidExtra):
    """Computes a loss and its gradients; as JSON.

    Wire: 0.1.0 to before 0.3.0.
    """

    forward_backward_input: ForwardBackwardInputParam
    """Datums and loss."""
    model_id: ModelID
    """The model."""


@define
class TrainingForwardParams(ForbidExtra):
    """Computes a loss without gradients.

    Wire: 0.1.0 to before 0.3.0.
    """

    forward_input: ForwardBackwardInputParam
    """Datums and loss."""
    model_id: ModelID
    """The model."""


@define
class TrainingOptimStepParams(ForbidExtra):
    """Updates the weights by the gradients so far.

    Wire: 0.1.0 to before 0.3.0.
    """

    adam_params: AdamParams
    """Settings of the step."""
    model_id: ModelID
    """The model."""
    type: Literal["optim_step"] = field(default="optim_step")
    """Tag of the request."""


@define
class TrainingRun(AllowExtra):
    """The history of one model under training.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except training_run_id.
    """

    _essential = frozenset({"training_run_id"})

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
class TrainingRunIdsResponse(AllowExtra):
    """Identifiers of training runs; no call gives it.

    Wire: 0.1.0 to before 0.2.0.
    """

    training_run_ids: list[str]
    """The training runs."""
    has_more: bool
    """Whether there are more."""


@define
class TrainingRunsResponse(AllowExtra):
    """One page of training runs.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except training_runs.
    """

    _essential = frozenset({"training_runs"})

    training_runs: list[TrainingRun]
    """The runs."""
    cursor: Cursor
    """Place of the page."""


@define
class TryAgainResponse(AllowExtra):
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
class UnhandledExceptionEvent(AllowExtra):
    """An exception reached the user.

    Wire: 0.1.0 and later.
    """

    event: Literal["UNHANDLED_EXCEPTION"] = field(default="UNHANDLED_EXCEPTION", validator=field_validator())
    """Kind of the event, one of EventType."""
    event_id: str = field(validator=field_validator())
    """Identifies the event, a UUID."""
    event_session_index: int = field(validator=field_validator())
    """Count of the session's events, from 0."""
    severity: Severity = field(validator=field_validator())
    """How grave it is."""
    timestamp: datetime = field(validator=field_validator())
    """When it happened."""
    error_type: str = field(validator=field_validator())
    """Class of the exception."""
    error_message: str = field(validator=field_validator())
    """Text of the exception."""
    traceback: str | None = field(default=None, validator=field_validator())
    """Where it came from."""


TelemetryEvent: TypeAlias = SessionStartEvent | SessionEndEvent | UnhandledExceptionEvent | GenericEvent
"""
Something that happened in a client.

Wire: 0.1.0 and later.
"""


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
    """Count of the session's events, from 0."""
    severity: Severity
    """How grave it is."""
    timestamp: datetime
    """When it happened."""
    traceback: str | UnsetType | None = field(default=UNSET)
    """Where it came from."""


TelemetryEventParam: TypeAlias = (
    SessionStartEventParam | SessionEndEventParam | UnhandledExceptionEventParam | GenericEventParam
)
"""
Something that happened in a client.

Wire: 0.1.0 to before 0.3.0.
"""


@define
class UnloadModelRequest(ForbidExtra):
    """Forgets a model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    type: Literal["unload_model"] = field(default="unload_model", validator=field_validator())
    """Tag of the request."""


@define
class UnloadModelResponse(AllowExtra):
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
    | SaveWeightsExternalResponse
    | SaveWeightsExternalResponseInternal
    | CreateCustomLossResponse
)
"""
A result, a failure or a wait; nothing wraps it, and which result it is the asker knows.

Wire: 0.1.0 and later.
"""


@define
class UntypedAPIFuture(AllowExtra):
    """Queued work, whose result is fetched with retrieve_future.

    Wire: 0.1.0 and later.
    """

    request_id: RequestID
    """The work."""
    model_id: ModelID | None = field(default=None)
    """The model that the work is done on."""
    sample_sequence_ids: list[str] | None = field(default=None)
    """Identifies each sample of asample, in order; clients of these versions insist on it. (wire 0.26.2 and later)"""


@define
class UserSearchOwner(ForbidExtra):
    """Sessions of given users.

    Wire: 0.36.0 and later.
    """

    owner_urns: list[str] = field(validator=field_validator(has_size(1, 10)))
    """The users, 1 to 10 of them."""
    type: Literal["user"] = field(default="user", validator=field_validator())
    """Tag of the choice."""


SearchOwner: TypeAlias = OwnSearchOwner | AccessibleSearchOwner | UserSearchOwner
"""
Whose sessions to look for.

Wire: 0.36.0 and later.
"""


@define
class ValidationErrorBody(AllowExtra):
    """Body of a 422, one item per fault.

    Wire: 0.1.0 and later.
    """

    detail: list[ValidationErrorItem]
    """All faults found."""


@define
class ValidationErrorItem(AllowExtra):
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
class WeightLoadParams(ForbidExtra):
    """Loads saved weights into a model.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    path: str
    """Where the weights lie, a tinker:// path."""
    type: Literal["load_weights"] = field(default="load_weights")
    """Tag of the request."""


@define
class WeightSaveForSamplerParams(ForbidExtra):
    """Saves weights to sample from, under a name or straight into a new sampling session.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    path: str | UnsetType = field(default=UNSET)
    """Name of the checkpoint; left out when sampling_session_seq_id is given."""
    type: Literal["save_weights_for_sampler"] = field(default="save_weights_for_sampler")
    """Tag of the request."""


@define
class WeightSaveParams(ForbidExtra):
    """Saves weights and optimizer state.

    Wire: 0.1.0 to before 0.3.0.
    """

    model_id: ModelID
    """The model."""
    path: str | UnsetType = field(default=UNSET)
    """Name of the checkpoint; null lets the server name it."""
    type: Literal["save_weights"] = field(default="save_weights")
    """Tag of the request."""


@define
class WeightsInfoRequest(ForbidExtra):
    """Asks of which base model and adapter saved weights are.

    Wire: 0.6.0 and later.
    """

    tinker_path: str = field(validator=field_validator())
    """Where the weights lie, a tinker:// path."""


@define
class WeightsInfoResponse(AllowExtra):
    """Base model and adapter of saved weights.

    Wire: 0.6.0 and later.

    A field that the server leaves out or garbles is None, except base_model and lora_rank and train_unembed and train_mlp and train_attn.
    """

    _essential = frozenset({"base_model", "lora_rank", "train_unembed", "train_mlp", "train_attn"})

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
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig)
    """How a model of these weights is trained. (wire 0.29.1 and later)"""


@define
class WhoamiResponse(AllowExtra):
    """Who the caller is, as clients read it from their JWT; never on the wire.

    Wire: 0.23.4 and later.
    """

    user_urn: str
    """The user."""
    email: str | None = field(default=None)
    """Address of the user."""
    org_urn: str | None = field(default=None)
    """The organization. (wire 0.34.0 and later)"""
