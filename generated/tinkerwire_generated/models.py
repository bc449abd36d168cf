# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of all wire versions."""

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

from tinkerwire_generated.constants import (
    CHECKPOINT_SEGMENTS,
    LOSS_INPUT_DTYPES,
    TINKER_SCHEME,
)

AccessScope: TypeAlias = Literal["owned", "accessible"]
"""
Sessions that the caller owns, or all that the caller may see.

Wire: 0.15.0 and later.
"""


@define
class AccessTokenResponse(AllowExtra):
    """Final response of the sign-in service.

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
    """Active sessions.

    Wire: 0.36.0 and later.
    """

    type: Literal["active"] = field(default="active", validator=field_validator())
    """Tag of the choice."""


@define
class AdamOptimizerConfig(ForbidExtra):
    """Configuration of AdamW as the optimizer of a model.

    Wire: 0.29.1 and later.
    """

    type: Literal["adamw"] = field(default="adamw", validator=field_validator())
    """Tag of the optimizer."""


@define
class AdamParams(ForbidExtra):
    """Settings of one AdamW step.

    Wire: 0.1.0 and later.

    Example:
        >>> params = tinker.AdamParams(learning_rate=0.001, weight_decay=0.01)
        >>> params.beta2
        0.95
    """

    learning_rate: float = field(default=0.0001, validator=field_validator())
    """Step size."""
    beta1: float = field(default=0.9, validator=field_validator())
    """Decay per step of the mean of gradients."""
    beta2: float = field(default=0.95, validator=field_validator())
    """Decay per step of the mean of squared gradients."""
    eps: float = field(default=1e-12, validator=field_validator())
    """Term added to the divisor against division by zero."""
    weight_decay: float = field(default=0.0, validator=field_validator())
    """Decay of the weights, times the step size, decoupled from the gradient. (wire 0.7.0 and later)"""
    grad_clip_norm: float = field(default=0.0, validator=field_validator())
    """Maximum global norm of the gradient; 0 for no limit. (wire 0.7.0 and later)"""


@define
class ApiKeyDetails(AllowExtra):
    """Owner of an API key.

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
    """Name of the session."""


@define
class ApiKeyUserDetails(AllowExtra):
    """The user of a key.

    Wire: 0.26.2 and later.
    """

    email: str
    """Address of the user."""


@define
class AssignSessionProjectRequest(ForbidExtra):
    """Request to move a session to a project.

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
    """Time of the event."""
    event: str
    """Name of the event."""
    model_id: str | None = field(default=None)
    """Model affected by the event."""
    tinker_path: str | None = field(default=None)
    """The tinker:// path of the affected weights."""
    purpose: str | None = field(default=None)
    """Purpose of the event."""
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
    """Configuration for signing in.

    Wire: 0.26.2 to before 0.29.1.
    """

    clientId: str
    """Identifier of the client at the sign-in service; also read under the name client_id."""


@define
class AuthErrorResponse(AllowExtra):
    """Body of a rejected request about keys.

    Wire: 0.26.2 and later.
    """

    detail: str | None = field(default=None)
    """Error message."""


@define
class AuthTokenRequest(ForbidExtra):
    """Request for a token; has no fields.

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
    """End of the span, exclusive."""
    event_info: BillingEventInfo
    """Resource that was used."""
    base_model: str | None = field(default=None)
    """Name of the base model."""
    user_id: str | None = field(default=None)
    """User of the resource."""
    user_name: str | None = field(default=None)
    """Name of the user."""
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
    """Time until which costs are known. (wire 0.30.4 and later)"""


@define
class BillingUsageSession(AllowExtra):
    """Metadata of a session in the usage.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values of the user."""


@define
class CancelFutureRequest(ForbidExtra):
    """Request to cancel a sample.

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
    """Purpose of the checkpoint; clients pass on unknown values."""
    time: datetime
    """Time of saving."""
    tinker_path: str
    """The tinker:// path of the weights."""
    size_bytes: int | None = field(default=None)
    """Size in bytes. (wire 0.4.0 and later)"""
    public: bool = field(default=False)
    """True if everybody may load the checkpoint. (wire 0.4.0 and later)"""
    expires_at: datetime | None = field(default=None)
    """Time of deletion; null for never. (wire 0.9.0 and later)"""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values from the save request. (wire 0.26.2 and later)"""


@define
class CheckpointArchiveUrlResponse(AllowExtra):
    """URL of a checkpoint as one archive.

    Wire: 0.2.0 to before 0.36.0.

    A field that the server leaves out or garbles is None, except url.
    """

    _essential = frozenset({"url"})

    url: str
    """The URL."""
    expires: datetime
    """Expiry time of the URL."""


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
Purpose of a checkpoint: to resume training, to sample, or to download.

Wire: 0.1.0 and later.
"""


@define
class CheckpointsListResponse(AllowExtra):
    """One page of checkpoints.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except checkpoints.
    """

    _essential = frozenset({"checkpoints"})

    checkpoints: list[Checkpoint]
    """The checkpoints."""
    cursor: Cursor | None = field(default=None)
    """Position of the page; null if the page has all entries. (wire 0.4.0 and later)"""


@define
class ClientConfigRequest(ForbidExtra):
    """Request for the settings of a client.

    Wire: 0.18.2 and later.
    """

    sdk_version: str = field(validator=field_validator())
    """Wire version of the client, for example 0.38.0."""


@define
class ClientConfigResponse(AllowExtra):
    """Settings that the server requires, fixed for the life of a client; all are optional.

    Wire: 0.18.2 and later.
    """

    pjwt_auth_enabled: bool = field(default=False)
    """True if the key must be exchanged at auth/token for a JWT."""
    credential_default_source: str = field(default="api_key")
    """Source of credentials, api_key or credential_cmd."""
    sample_dispatch_bytes_semaphore_size: int = field(default=10485760)
    """Maximum number of bytes of sample requests in flight."""
    inflight_response_bytes_semaphore_size: int = field(default=52428800)
    """Maximum number of bytes of results being fetched concurrently."""
    parallel_fwdbwd_chunks: bool = field(default=True)
    """True if the chunks of one forward_backward are sent concurrently."""
    proto_write_fwdbwd: bool = field(default=False, metadata={"until": "0.25.0"})
    """True if the body of forward_backward is protobuf. (wire 0.19.0 to before 0.25.0)"""
    billing_exception_max_pause_duration_sec: int = field(default=3600)
    """Seconds for which clients retry after a 402. (wire 0.20.0 and later)"""
    grpc_target: str | None = field(default=None, metadata={"until": "0.22.7"})
    """Address for polling futures by gRPC; null for none. (wire 0.21.0 to before 0.22.7)"""
    enable_grpc_retrieve_future: bool = field(default=False, metadata={"until": "0.22.7"})
    """True if futures are polled by gRPC. (wire 0.21.0 to before 0.22.7)"""
    sample_no_retries: bool = field(default=False)
    """True if clients do not retry failed samples. (wire 0.21.0 and later)"""
    proto_compress_fwdbwd: bool = field(default=False)
    """True if the protobuf body of forward_backward is compressed by zstd. (wire 0.22.7 and later)"""
    fwd_via_fwdbwd: bool = field(default=False, metadata={"until": "0.25.0"})
    """True if forward is sent as forward_backward with forward_only. (wire 0.22.7 to before 0.25.0)"""
    sample_enable_stuck_detection: bool = field(default=True)
    """True if clients give up samples without progress. (wire 0.22.7 and later)"""
    sample_max_concurrent_requests: int = field(default=2000)
    """Maximum number of samples awaited concurrently. (wire 0.22.7 and later)"""
    use_pyqwest_transport: bool = field(default=True)
    """True if the official client uses pyqwest instead of httpx. (wire 0.22.7 and later)"""
    create_model_via_load_weights: bool = field(default=False, metadata={"until": "0.38.0"})
    """True if a model is created from saved weights by load_weights alone. (wire 0.24.1 to before 0.38.0)"""
    fwdbwd_max_chunk_len: int = field(default=1024)
    """Maximum number of datums of one forward_backward. (wire 0.25.0 and later)"""
    fwdbwd_max_chunk_bytes_count: int = field(default=5000000)
    """Maximum number of bytes of one forward_backward. (wire 0.25.0 and later)"""
    fwdbwd_dispatch_bytes_semaphore_size: int = field(default=50000000)
    """Maximum number of bytes of forward_backward in flight. (wire 0.25.0 and later)"""
    sample_use_retrieve_futures: bool = field(default=False)
    """True if samples are waited for by retrieve_futures. (wire 0.26.2 and later)"""
    sample_join_sampling_session: bool = field(default=False)
    """True if copies of a sampling client get their number from join_sampling_session. (wire 0.32.0 and later)"""
    custom_loss_server_side: bool = field(default=False)
    """True if the server computes custom losses. (wire 0.36.0 and later)"""


@define
class ClientDynamicConfigResponse(AllowExtra):
    """Settings that may change during the life of a client.

    Wire: 0.25.0 and later.
    """

    refresh_interval_sec: int = field(default=300)
    """Seconds until clients should read the settings again; clients wait at least 10."""
    sample_cancel_enabled: bool = field(default=False)
    """True if clients cancel abandoned samples. (wire 0.26.2 and later)"""
    sample_cancel_max_batch_size: int = field(default=64)
    """Maximum number of cancellations in flight. (wire 0.26.2 and later)"""


@define
class ClientFinishedSessionStatusQuery(ForbidExtra):
    """Sessions that their client ended.

    Wire: 0.36.0 and later.
    """

    type: Literal["client_finished"] = field(default="client_finished", validator=field_validator())
    """Tag of the choice."""
    reasons: list[ClientSessionFinishReasonType] | None = field(default=None, validator=field_validator())
    """Only sessions that ended with this status; null for all."""


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
Status with which a client ended its session.

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
Status with which a client ended its session.

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
    """Status at the end."""
    type: Literal["client_finished"] = field(default="client_finished")
    """Tag of the status."""
    detail: str | None = field(default=None)
    """Details as text."""


@define
class CompleteMetadataResponse(AllowExtra):
    """The result is ready and has this size; the next poll fetches it with allow_metadata_only off.

    Wire: 0.14.0 and later.
    """

    status: Literal["complete_metadata"] = field(default="complete_metadata")
    """Tag of the response."""
    response_payload_size: int
    """Size of the result in bytes."""


@define
class ComputeLogprobsResponse(AllowExtra):
    """Logprobs of a prompt; no endpoint returns it.

    Wire: 0.1.0 to before 0.2.0.
    """

    logprobs: list[float | None]
    """Logprob (nats) of each token; null where a token has no logprob."""
    type: Literal["compute_logprobs"] = field(default="compute_logprobs")
    """Tag of the result."""


@define
class CopyWeightsRequest(ForbidExtra):
    """Request to copy another user's saved weights into a project.

    Wire: 0.26.2 and later.
    """

    source_path: str = field(validator=field_validator())
    """The tinker:// path of the weights."""
    session_id: str | None = field(default=None, validator=field_validator())
    """The session that the copy belongs to."""
    model_seq_id: int | None = field(default=None, validator=field_validator())
    """Index among the session's models, from 0."""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the copy is deleted; null keeps it."""
    weights_access_token: str | None = field(default=None, validator=field_validator())
    """Token of the owner; since wire 0.34.0 clients send it as a header."""
    destination_project_id: str | None = field(default=None, validator=field_validator())
    """Project that the copy belongs to. (wire 0.34.0 and later)"""


@define
class CopyWeightsResponse(AllowExtra):
    """The copy.

    Wire: 0.26.2 and later.
    """

    tinker_path: str
    """The tinker:// path of the weights."""


@define
class CreateApiKeyRequest(ForbidExtra):
    """Request to create an API key for the user who signed in.

    Wire: 0.26.2 to before 0.29.1.
    """

    name: str = field(validator=field_validator())
    """Name of the key."""
    note: str = field(validator=field_validator())
    """Note of the user on the key."""


@define
class CreateCustomLossRequest(ForbidExtra):
    """Request to upload a loss for the server to compute.

    Wire: 0.36.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session that the loss belongs to."""
    custom_loss_seq_id: int = field(validator=field_validator())
    """Index among the session's custom losses, from 0."""
    name: str = field(validator=field_validator())
    """Name of the loss."""
    inputs: list[CustomLossInput] = field(validator=field_validator())
    """Inputs of the loss, at most 16; the first is logprobs."""
    graph: CustomLossGraph = field(validator=field_validator())
    """Computation of the loss."""
    type: Literal["create_custom_loss"] = field(default="create_custom_loss", validator=field_validator())
    """Tag of the request."""


@define
class CreateCustomLossResponse(AllowExtra):
    """Result of create_custom_loss.

    Wire: 0.36.0 and later.
    """

    loss_id: str
    """Identifier for loss_id in the loss_fn_config of loss custom."""
    type: Literal["create_custom_loss"] = field(default="create_custom_loss")
    """Tag of the result."""


@define
class CreateModelRequest(ForbidExtra):
    """Request to create a model to train.

    Wire: 0.1.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session that the model belongs to. (wire 0.3.0 and later)"""
    model_seq_id: int = field(validator=field_validator())
    """Index among the session's models, from 0. (wire 0.3.0 and later)"""
    base_model: str = field(validator=field_validator())
    """Name of the base model."""
    user_metadata: dict[str, Any] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the training run. (wire 0.2.0 and later)"""
    lora_config: LoraConfig | None = field(default=None, validator=field_validator())
    """The adapter; null trains the whole model."""
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig, validator=field_validator())
    """Optimizer of the model. (wire 0.29.1 and later)"""
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
    """Request to open a sampling session on base_model or on model_path.

    Wire: 0.3.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """Session of the sampling session."""
    sampling_session_seq_id: int = field(validator=field_validator())
    """Index among the session's sampling sessions, from 0."""
    base_model: str | None = field(default=None, validator=field_validator())
    """Name of the base model to sample from."""
    model_path: str | None = field(default=None, validator=field_validator())
    """The tinker:// path of the weights to sample from."""
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
    """Request to open a session.

    Wire: 0.3.0 and later.
    """

    tags: list[str] = field(validator=field_validator())
    """Free text tags for finding the session."""
    user_metadata: dict[str, Any] | None = field(validator=field_validator())
    """Free keys and values of the user; null is allowed, but the field is required."""
    sdk_version: str = field(validator=field_validator())
    """Wire version of the client, for example 0.16.1."""
    project_id: str | None = field(default=None, validator=field_validator())
    """Project that the session belongs to; null for the default one. (wire 0.15.0 and later)"""
    display_name: str | None = field(default=None, validator=field_validator())
    """Human-readable name of the session. (wire 0.34.0 and later)"""
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
    """Note to log as an error; the request did not fail."""
    type: Literal["create_session"] = field(default="create_session")
    """Tag of the response."""


@define
class CreatedApiKey(AllowExtra):
    """A new API key.

    Wire: 0.26.2 to before 0.29.1.
    """

    api_key: str
    """The secret key; no other response has it."""
    id: int
    """Number of the key."""
    details: ApiKeyDetails
    """Owner of the key."""


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
    """Current storage of checkpoints.

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
    """Position of a page in the list.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    offset: int
    """Number of entries before the page."""
    limit: int
    """Maximum number of entries on the page."""
    total_count: int
    """Number of entries of the list."""


@define
class CustomLossGraph(ForbidExtra):
    """A computation, as steps in order.

    Wire: 0.36.0 and later.
    """

    nodes: list[CustomLossNode] = field(validator=field_validator())
    """The steps."""
    format: Literal[1] = field(default=1, validator=field_validator())
    """Version of the format."""


@define
class CustomLossInput(ForbidExtra):
    """An input of a custom loss.

    Wire: 0.36.0 and later.
    """

    name: str = field(validator=field_validator())
    """Name of the session."""
    rank: CustomLossInputRank = field(validator=field_validator())
    """Number of dimensions."""


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
    """Name of the value."""
    target: str = field(validator=field_validator())
    """Function or attribute of the step."""
    args: list[Any] = field(factory=list, validator=field_validator())
    """Positional values; references, tuples, slices and the like are objects with one key."""
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
    """One training example: an input and the tensors of its loss.

    Wire: 0.1.0 and later.

    Example:
        >>> datum = tinker.Datum(
        ...     model_input=tinker.ModelInput.from_ints([72, 101, 108]),
        ...     loss_fn_inputs={"target_tokens": [101, 108, 108], "weights": [0.0, 1.0, 1.0]},
        ... )
        >>> datum.loss_fn_inputs["weights"].dtype
        'float32'
    """

    model_input: ModelInput = field(validator=field_validator())
    """Input of the model."""
    loss_fn_inputs: LossFnInputs
    """Tensors of the loss."""
    model_input_spans: ProvenanceSpans | None = field(
        default=None, validator=field_validator(), metadata={"protobuf_only": True}
    )
    """Origin of the tokens of the input; the runs are in order and cover all tokens. (wire 0.26.2 and later)"""
    loss_fn_input_spans: ProvenanceSpans | None = field(
        default=None, validator=field_validator(), metadata={"protobuf_only": True}
    )
    """Origin of the tokens of target_tokens; the runs are in order and cover all tokens. (wire 0.26.2 and later)"""


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
class DeviceAuthorizationResponse(AllowExtra):
    """Response of the sign-in service, a third party whose calls the contract does not describe.

    Wire: 0.26.2 to before 0.29.1.
    """

    device_code: str
    """Identifier of the sign-in."""
    user_code: str
    """Code that the user enters."""
    verification_uri: str
    """URL where the user enters the code."""
    expires_in: float
    """Seconds until the sign-in expires."""
    verification_uri_complete: str | None = field(default=None)
    """The URL with the code in it."""
    interval: float | None = field(default=None)
    """Seconds between two polls."""


@define
class DimuonOptimizerConfig(ForbidExtra):
    """Configuration of Dimuon as the optimizer of a model.

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
    """Maximum global norm of the gradient; 0 for no limit."""
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
    """Exponent of the adapter rank in the correction of the step size. (wire to before 0.30.4)"""


@define
class DmelChunk(DmelChunkMixin, ForbidExtra):
    """A piece of input as a serialized tensor.

    Wire: 0.23.4 and later.
    """

    _is_tag_optional = True

    dmel: bytes
    """Serialized tensor, in base64; its first dimension is the number of tokens."""
    type: Literal["dmel"] = field(default="dmel", validator=field_validator())
    """Tag of the chunk."""


@define
class EncodedTextChunk(EncodedTextChunkMixin, ForbidExtra):
    """A run of text as token ids.

    Wire: 0.1.0 and later.
    """

    _is_tag_optional = True

    tokens: Sequence[int] | Array
    """Token ids in order."""
    type: Literal["encoded_text"] = field(default="encoded_text", validator=field_validator())
    """Tag of the chunk; clients of wire 0.3.0 to 0.16.1 omit it."""


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
    """Error detail: mostly a sentence, sometimes a structure."""


@define
class ErrorResponse(AllowExtra):
    """An error; no endpoint returns it.

    Wire: 0.1.0 to before 0.2.0.
    """

    error: str
    """Name of the error."""
    message: str
    """Error message."""
    details: dict[str, Any] | None = field(default=None)
    """Details by name."""


EventType: TypeAlias = Literal["SESSION_START", "SESSION_END", "UNHANDLED_EXCEPTION", "GENERIC_EVENT"]
"""
Kind of an event.

Wire: 0.1.0 and later.
"""


@define
class ExternalWeightsUrlsResponse(AllowExtra):
    """URLs of the files of saved weights.

    Wire: 0.28.1 and later.

    A field that the server leaves out or garbles is None, except urls.
    """

    _essential = frozenset({"urls"})

    urls: dict[str, str]
    """URL of each file, by name."""
    expires: datetime
    """Expiry time of the URLs."""


@define
class FailedSessionStatusQuery(ForbidExtra):
    """Sessions that failed.

    Wire: 0.36.0 and later.
    """

    type: Literal["failed"] = field(default="failed", validator=field_validator())
    """Tag of the choice."""


@define
class FinishSessionRequest(ForbidExtra):
    """Request to end a session.

    Wire: 0.27.2 and later.
    """

    reason: SessionFinishReason = field(validator=field_validator())
    """Reason."""
    detail: str | None = field(validator=field_validator())
    """Details as text; clients send null explicitly."""


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
    """Settings of the loss, by name; null for its defaults. Before wire 0.26.2 numbers only. (wire 0.3.0 and later)"""


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
    """Request to compute a loss and its gradients, as JSON.

    Wire: 0.3.0 to before 0.25.0.
    """

    forward_backward_input: ForwardBackwardInput = field(validator=field_validator())
    """Datums and loss."""
    model_id: ModelID = field(validator=field_validator())
    """The model."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order."""


@define(kw_only=False)
class ForwardRequest(DataclassMethods, ForbidExtra):
    """Request to compute a loss without gradients.

    Wire: 0.3.0 to before 0.25.0.
    """

    forward_input: ForwardBackwardInput = field(validator=field_validator())
    """Datums and loss."""
    model_id: ModelID = field(validator=field_validator())
    """The model."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order."""


@define
class FutureFailed(AllowExtra):
    """A sample failed; retrieve_future fetches the error.

    Wire: 0.26.2 and later.
    """

    request_id: RequestID
    """The work."""
    state: Literal["failed"] = field(default="failed")
    """Tag of the outcome."""


@define
class FutureFinished(AllowExtra):
    """A sample is ready; retrieve_future fetches it.

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
Outcome of a sample.

Wire: 0.26.2 and later.
"""


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
class FutureRetrieveRequest(ForbidExtra):
    """Request to wait for a result.

    Wire: 0.3.0 and later.
    """

    request_id: RequestID = field(validator=field_validator())
    """The work."""
    allow_metadata_only: bool = field(default=False, validator=field_validator())
    """True if the server may return the size of a result instead of the result. (wire 0.14.0 and later)"""


@define
class FuturesRetrieveRequest(ForbidExtra):
    """Request to wait for any of the samples of a sampling session.

    Wire: 0.26.2 and later.
    """

    target: SamplingSessionFuturesTarget = field(validator=field_validator())
    """Sampling session and client of the samples."""
    prev_cursor: int = field(default=0, validator=field_validator())
    """Cursor of the last response, which acknowledges it."""
    timeout: float | None = field(default=None, validator=field_validator())
    """Seconds to hold the request at most; null for the server's choice, 0 to acknowledge only."""
    retrieved_request_ids: list[str] = field(factory=list, validator=field_validator())
    """Samples whose results were fetched. (wire 0.36.0 and later)"""


@define
class FuturesRetrieveResponse(AllowExtra):
    """Samples that finished since the last response.

    Wire: 0.26.2 and later.
    """

    completions: list[FutureCompletion]
    """Outcome of each sample."""
    cursor: int
    """Position in the order of completions; the next prev_cursor."""


@define
class GeneratedKey(AllowExtra):
    """An API key that a sign-in made, as kept in the credentials file.

    Wire: 0.26.2 and later.
    """

    key: str
    """The secret key."""
    name: str
    """Name of the key."""
    details: ApiKeyDetails
    """Owner of the key."""
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
    """Index among the session's events, from 0."""
    severity: Severity = field(validator=field_validator())
    """Severity of the event."""
    timestamp: datetime = field(validator=field_validator())
    """Time of the event."""
    event_name: str = field(validator=field_validator())
    """Name of the event."""
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
class GetBillingUsageRequest(ForbidExtra):
    """Span of time of the usage; its fields are sent as query parameters.

    Wire: 0.23.4 and later.
    """

    starting_on: datetime
    """Start of the span."""
    ending_before: datetime
    """End of the span, exclusive."""


@define
class GetCurrentCheckpointStorageUsageRequest(ForbidExtra):
    """Filter of the storage; its fields are sent as query parameters.

    Wire: 0.32.0 and later.
    """

    project_id: str | None = field(default=None)
    """Only this project; null for all."""


@define
class GetInfoRequest(ForbidExtra):
    """Request to describe a model.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    type: Literal["get_info"] = field(default="get_info", validator=field_validator())
    """Tag of the request."""


@define
class GetInfoResponse(AllowExtra):
    """Description of a model.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except model_data and model_id.
    """

    _essential = frozenset({"model_data", "model_id"})

    model_data: ModelData
    """Names that belong to the model."""
    model_id: ModelID
    """The model."""
    is_lora: bool | None = field(default=None)
    """True if an adapter is trained."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    model_name: str | None = field(default=None)
    """Name of the base model."""
    type: Literal["get_info"] | None = field(default=None)
    """Tag of the response."""
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig)
    """Optimizer of the model. (wire 0.29.1 and later)"""


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
    """Name of the base model."""
    model_path: str | None = field(default=None)
    """The tinker:// path of the weights; null for the base model itself."""


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
    """Training runs and samplers of a session.

    Wire: 0.5.1 and later.

    A field that the server leaves out or garbles is None, except training_run_ids and sampler_ids.
    """

    _essential = frozenset({"training_run_ids", "sampler_ids"})

    training_run_ids: list[ModelID]
    """Models trained in the session."""
    sampler_ids: list[str]
    """Samplers opened in the session."""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values from create_session. (wire 0.30.4 and later)"""
    display_name: str | None = field(default=None)
    """Human-readable name of the session. (wire 0.34.0 and later)"""


@define
class HealthResponse(AllowExtra):
    """Response of a server that is up.

    Wire: 0.1.0 and later.
    """

    status: Literal["ok"] = field(default="ok")
    """Always "ok"."""


@define
class ImageAssetPointerChunk(ImageAssetMixin, ForbidExtra):
    """An image that the server fetches from a URL.

    Wire: 0.1.0 and later.
    """

    _is_tag_optional = True

    location: str = field(validator=field_validator())
    """Location of the image."""
    format: ImageFormat = field(validator=field_validator())
    """Encoding of the stored image."""
    height: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Height in pixels. (wire 0.1.0 to before 0.6.0)"""
    width: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Width in pixels. (wire 0.1.0 to before 0.6.0)"""
    tokens: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Number of tokens of the image in the input. (wire 0.1.0 to before 0.6.0)"""
    expected_tokens: int | None = field(default=None, validator=field_validator())
    """Expected number of tokens of the image; null for the server's choice. (wire 0.6.0 and later)"""
    type: Literal["image_asset_pointer"] = field(default="image_asset_pointer", validator=field_validator())
    """Tag of the chunk."""


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
class ImageChunk(ImageBytesMixin, ForbidExtra):
    """An image, sent in the request.

    Wire: 0.3.0 and later.
    """

    _is_tag_optional = True

    data: bytes
    """Bytes of the image file, in base64."""
    format: ImageFormat = field(validator=field_validator())
    """Encoding of the bytes."""
    height: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Height in pixels. (wire 0.3.0 to before 0.6.0)"""
    width: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Width in pixels. (wire 0.3.0 to before 0.6.0)"""
    tokens: int | None = field(default=None, validator=field_validator(), metadata={"until": "0.6.0"})
    """Number of tokens of the image in the input. (wire 0.3.0 to before 0.6.0)"""
    expected_tokens: int | None = field(default=None, validator=field_validator())
    """Expected number of tokens of the image; null for the server's choice. (wire 0.6.0 and later)"""
    type: Literal["image"] = field(default="image", validator=field_validator())
    """Tag of the chunk."""


ImageFormat: TypeAlias = Literal["png", "jpeg"]
"""
Encoding of an image.

Wire: 0.1.0 and later.
"""


@define
class JoinSamplingSessionRequest(ForbidExtra):
    """Request for the number of a copy of a sampling client.

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
    """The number; seq_ids of the copy start at the number times SEQ_IDS_PER_COPY."""
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
    """Request to load saved weights into a model, or into a new one named by session_id and model_seq_id.

    Wire: 0.1.0 and later.
    """

    path: str = field(validator=field_validator())
    """The tinker:// path of the weights."""
    model_id: ModelID | None = field(default=None, validator=field_validator())
    """The model; null creates a new one."""
    optimizer: bool | None = field(default=None, validator=field_validator())
    """True if the optimizer state is loaded too. (wire 0.6.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order. (wire 0.3.0 and later)"""
    weights_access_token: str | None = field(default=None, validator=field_validator())
    """Token of the owner of the weights; null for the caller's weights. (wire 0.18.2 and later)"""
    session_id: str | None = field(default=None, validator=field_validator())
    """The session that a new model belongs to. (wire 0.24.1 and later)"""
    model_seq_id: int | None = field(default=None, validator=field_validator())
    """Index among the session's models, from 0, for a new model. (wire 0.24.1 and later)"""
    base_model: str | None = field(default=None, validator=field_validator())
    """Name of the base model of a new model; null for the base model of the weights. (wire 0.24.1 and later)"""
    user_metadata: dict[str, Any] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the training run of a new model. (wire 0.24.1 and later)"""
    optimizer_config: OptimizerConfig | None = field(default=None, validator=field_validator())
    """Optimizer of a new model; null for AdamW. (wire 0.29.1 and later)"""
    type: Literal["load_weights"] = field(default="load_weights", validator=field_validator())
    """Tag of the request."""


@define
class LoadWeightsResponse(AllowExtra):
    """Result of load_weights.

    Wire: 0.1.0 and later.
    """

    path: str | None = field(default=None)
    """The tinker:// path of the loaded weights."""
    model_id: str | None = field(default=None)
    """The model. (wire 0.24.1 and later)"""
    type: Literal["load_weights"] | None = field(default=None)
    """Tag of the result."""


LocationPart: TypeAlias = str | int
"""
One step of the path to a field, a name or an index.

Wire: 0.1.0 and later.
"""


@define
class LoraConfig(ForbidExtra):
    """Size and target layers of a LoRA adapter.

    Wire: 0.1.0 and later.
    """

    rank: int = field(validator=field_validator())
    """Inner dimension of the adapter."""
    seed: int | None = field(default=None, validator=field_validator())
    """Seed of the initial weights; null draws a seed."""
    train_unembed: bool = field(default=True, validator=field_validator())
    """True if the unembedding is adapted."""
    train_mlp: bool = field(default=True, validator=field_validator())
    """True if the MLP layers are adapted."""
    train_attn: bool = field(default=True, validator=field_validator())
    """True if the attention layers are adapted."""


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
    """The secret key."""
    name: str
    """Name of the key."""
    type: Literal["manual"] = field(default="manual")
    """Tag of the record."""
    note: str | None = field(default=None)
    """Note of the user."""
    details: ApiKeyDetails | None = field(default=None)
    """Owner of the key."""


KeyRecordV1: TypeAlias = ManualKey | GeneratedKey
"""
An API key in the credentials file.

Wire: 0.26.2 and later.
"""


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
class ModelData(AllowExtra):
    """Names that belong to a model.

    Wire: 0.1.0 and later.

    A field that the server leaves out or garbles is None, except model_name and tokenizer_id.
    """

    _essential = frozenset({"model_name", "tokenizer_id"})

    arch: str | None = field(default=None)
    """Name of the architecture."""
    model_name: str | None = field(default=None)
    """Name of the base model."""
    tokenizer_id: str | None = field(default=None)
    """Name of the tokenizer, without the colon and the text after it. (wire 0.3.0 and later)"""


@define
class ModelGetInfoParams(ForbidExtra):
    """Request to describe a model.

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

    Example:
        >>> prompt = tinker.ModelInput.from_ints([72, 105])
        >>> prompt.length
        2
        >>> prompt.append(tinker.EncodedTextChunk(tokens=[33])).to_ints()
        [72, 105, 33]
    """

    chunks: list[ModelInputChunk] = field(validator=field_validator())
    """The chunks in order."""


ModelInputChunk: TypeAlias = EncodedTextChunk | ImageAssetPointerChunk | ImageChunk | DmelChunk
"""
A piece of a model's input; without a tag its keys determine the kind.

Wire: 0.1.0 and later.
"""


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
class OptimParamsBase(AllowExtra):
    """Settings of one step of any optimizer.

    Wire: 0.30.4 and later.
    """

    type: str = field(validator=field_validator())
    """Name of the optimizer."""


OptimParams: TypeAlias = AdamParams | DimuonParams | OptimParamsBase
"""
Settings of one step; since wire 0.30.4 settings of any optimizer.

Wire: 0.29.1 and later.
"""


@define
class OptimStepRequest(ForbidExtra):
    """Request to update the weights with the accumulated gradients.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    adam_params: AdamParams | None = field(default=None, validator=field_validator())
    """Settings of an AdamW step; since wire 0.29.1 null if optimizer_params has other settings."""
    optimizer_params: OtherOptimParams | None = field(default=None, validator=field_validator())
    """Settings of a step of another optimizer; null if adam_params has the settings. (wire 0.29.1 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order. (wire 0.3.0 and later)"""
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
    """Configuration of any optimizer of a model, with any settings.

    Wire: 0.30.4 and later.
    """

    type: str = field(validator=field_validator())
    """Name of the optimizer."""


OptimizerConfig: TypeAlias = AdamOptimizerConfig | DimuonOptimizerConfig | OptimizerConfigBase
"""
Optimizer of a model; since wire 0.30.4 any optimizer may be named.

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
    """The parts of a tinker:// path; clients create it, and it is never sent.

    Wire: 0.1.0 and later.
    """

    _checkpoint_segments = CHECKPOINT_SEGMENTS

    _tinker_scheme = TINKER_SCHEME

    tinker_path: str
    """The whole path, for example tinker://run/weights/0001."""
    training_run_id: str
    """The training run."""
    checkpoint_type: CheckpointType
    """Purpose of the checkpoint."""
    checkpoint_id: str
    """The checkpoint within its run, for example weights/0001."""


@define(kw_only=False)
class PromptAltTokens(DataclassMethods, AllowExtra):
    """Alternatives sampled at each prompt position but the first, as matrices with one row per position.

    Wire: 0.31.0 and later.
    """

    tokens: TensorData
    """Token ids (int64)."""
    logprobs: TensorData
    """Logprob (nats, float32) of each token."""


@define
class PromptProvenanceSpan(DataclassMethods, ForbidExtra):
    """A run of tokens that come from the prompt of a sample.

    Wire: 0.26.2 and later.
    """

    sequence_id: str = field(validator=field_validator(has_size(1)))
    """The sample, one of sample_sequence_ids."""
    length: int = field(validator=field_validator(at_least(0)))
    """Number of tokens of the run."""
    offset: int = field(default=0, validator=field_validator(at_least(0)))
    """Number of tokens of the prompt before the run."""


QueueState: TypeAlias = Literal["active", "paused_capacity", "paused_rate_limit"]
"""
Reason why a result is not ready: it is running, or waits for machines or for a rate limit.

Wire: 0.2.0 and later.
"""


RequestErrorCategory: TypeAlias = Literal["unknown", "server", "user"]
"""
Party that caused a failure; lower case on the wire, read in any case.

Wire: 0.3.0 and later.
"""


@define
class RequestFailedResponse(ErrorCategoryMixin, AllowExtra):
    """The work failed.

    Wire: 0.3.0 and later.
    """

    error: str
    """Error message."""
    category: RequestErrorCategory | str
    """Party that caused the failure; clients pass on unknown values."""


RequestID: TypeAlias = str
"""
Identifier of queued work.

Wire: 0.1.0 and later.
"""


@define
class SampleRequest(ForbidExtra):
    """Request for samples after a prompt, and for logprobs of the prompt itself.

    Wire: 0.1.0 and later.
    """

    prompt: ModelInput = field(validator=field_validator())
    """Prompt to continue."""
    sampling_params: SamplingParams = field(validator=field_validator())
    """Parameters of token sampling."""
    num_samples: int = field(default=1, validator=field_validator())
    """Number of samples."""
    base_model: str | None = field(default=None, validator=field_validator())
    """Base model; without a sampling session."""
    model_path: str | None = field(default=None, validator=field_validator())
    """The tinker:// path of the weights; without a sampling session."""
    sampling_session_id: str | None = field(default=None, validator=field_validator())
    """The sampling session. (wire 0.3.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Index among the sampling session's requests, from 0. (wire 0.3.0 and later)"""
    prompt_logprobs: bool | None = field(default=None, validator=field_validator())
    """True or false to return logprobs of the prompt or not; null for the server's choice."""
    topk_prompt_logprobs: int = field(default=0, validator=field_validator())
    """Number of most likely tokens to return at each position of the prompt; 0 for none. (wire 0.3.0 and later)"""
    record_stability_info: bool | None = field(default=None, validator=field_validator())
    """True to record data on stability; null for the server's choice. (wire 0.26.2 and later)"""
    topk_sample_logprobs: int = field(default=0, validator=field_validator())
    """Number of most likely tokens to return at each position of the samples; 0 for none. (wire 0.29.1 and later)"""
    target_prompt_logprobs: TensorData | None = field(default=None, validator=field_validator())
    """Token ids whose logprobs to return (int64, one row per prompt position but the first; -1 for none); null for none. (wire 0.30.4 and later)"""
    prompt_alt_tokens_k: int = field(default=0, validator=field_validator())
    """Number of alternatives to sample at each position of the prompt but the first; 0 for none. (wire 0.31.0 and later)"""
    prompt_logprobs_last_n: int | None = field(default=None, validator=field_validator())
    """Number of tokens at the end of the prompt with logprobs, at least 1; null for all. (wire 0.33.1 and later)"""
    type: Literal["sample"] = field(default="sample", validator=field_validator())
    """Tag of the request."""


@define
class SampleResponse(SampleResponseMixin, DataclassMethods, AllowExtra):
    """Result of asample; as JSON until wire 0.25.0, and as protobuf since 0.18.2.

    Wire: 0.1.0 to before 0.25.0.
    """

    sequences: list[SampledSequence]
    """The samples."""
    _prompt_logprobs: list[float | None] | None = field(default=None, alias="prompt_logprobs")
    """Logprob (nats) of each token of the prompt given the tokens before; null for the first."""
    _topk_prompt_logprobs: list[list[TokenLogprob] | None] | None = field(default=None, alias="topk_prompt_logprobs")
    """Most likely tokens at each position of the prompt, best first; null without tokens. (wire 0.3.0 and later)"""
    prompt_cache_hit_tokens: int = field(default=0)
    """Number of tokens of the prompt that came from the cache. (wire 0.23.4 and later)"""
    target_prompt_logprobs: TensorData | None = field(default=None, metadata={"protobuf_only": True})
    """Logprobs (nats, float32) of the tokens in target_prompt_logprobs, in its shape. (wire 0.30.4 and later)"""
    prompt_alt_tokens: PromptAltTokens | None = field(default=None, metadata={"protobuf_only": True})
    """Alternatives requested by prompt_alt_tokens_k. (wire 0.31.0 and later)"""
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
    """Number of tokens of the run."""
    offset: int = field(default=0, validator=field_validator(at_least(0)))
    """Number of tokens of the sample before the run."""


ProvenanceSpan: TypeAlias = PromptProvenanceSpan | SampledProvenanceSpan
"""
Origin of a run of tokens.

Wire: 0.26.2 and later.
"""


ProvenanceSpans: TypeAlias = list[ProvenanceSpan]
"""
Origin of tokens, run by run.

Wire: 0.26.2 and later.
"""


@define
class SampledSequence(SampledSequenceMixin, DataclassMethods, AllowExtra):
    """One sample.

    Wire: 0.1.0 to before 0.25.0.
    """

    stop_reason: StopReason | str
    """Reason of the end; clients pass on unknown values."""
    _tokens: list[int] = field(alias="tokens")
    """Sampled token ids."""
    _logprobs: list[float] | None = field(default=None, alias="logprobs")
    """Logprob (nats) of each sampled token."""
    sequence_id: str | None = field(default=None, metadata={"protobuf_only": True})
    """Identifier of the sample in provenance spans, one of the sample_sequence_ids of its future. (wire 0.26.2 and later)"""
    _topk_logprobs: list[list[TokenLogprob] | None] | None = field(
        default=None, alias="topk_logprobs", metadata={"protobuf_only": True}
    )
    """Most likely tokens at each position of the sample, best first; null without tokens. (wire 0.28.1 and later)"""


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


SamplingClientKind: TypeAlias = Literal["snapshot", "inflight"]
"""
Kind of sampling client; all inflight clients of a model sample from the weights saved last for any of them.

Wire: 0.38.0 and later.
"""


@define
class SamplingParams(AllowExtra):
    """Parameters of token sampling.

    Wire: 0.1.0 and later.

    Example:
        >>> params = tinker.SamplingParams(max_tokens=64, temperature=0.7, seed=1)
        >>> params.temperature
        0.7
    """

    max_tokens: int | None = field(default=None, validator=field_validator())
    """Maximum number of tokens to sample; null for the server's limit."""
    seed: int | None = field(default=None, validator=field_validator())
    """Seed of sampling; null for a random one."""
    stop: StopCondition | None = field(default=None, validator=field_validator())
    """Stop condition before max_tokens; null for the model's end token only."""
    temperature: float = field(default=1, validator=field_validator())
    """Divisor of the logits; 0 always takes the most likely token."""
    top_k: int = field(default=-1, validator=field_validator())
    """Number of most likely tokens to sample from; -1 for all."""
    top_p: float = field(default=1, validator=field_validator())
    """Total probability of the most likely tokens to sample from."""


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
class SamplingPrefillBillingEvent(AllowExtra):
    """Tokens of prompts.

    Wire: 0.23.4 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    cached: bool
    """True if the tokens came from the cache."""
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
class SamplingSessionFuturesTarget(ForbidExtra):
    """Sampling session and client whose samples are awaited.

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
    """Request to save weights for download.

    Wire: 0.28.1 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str = field(validator=field_validator())
    """Name of the checkpoint."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order."""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted; null keeps it."""
    type: Literal["save_weights_external"] = field(default="save_weights_external", validator=field_validator())
    """Tag of the request."""
    age_encryption_recipients: list[str] | None = field(default=None, validator=field_validator())
    """Public age keys to encrypt the files for; null for no encryption. (wire 0.33.1 and later)"""


@define
class SaveWeightsExternalResponse(AllowExtra):
    """Weights saved to download, as users see them.

    Wire: 0.28.1 and later.
    """

    path: str
    """The tinker:// path of the saved weights."""
    type: Literal["save_weights_external"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsExternalResponseInternal(AllowExtra):
    """Result of save_weights_external.

    Wire: 0.28.1 and later.
    """

    path: str | None = field(default=None)
    """The tinker:// path of the saved weights."""
    size_bytes: int | None = field(default=None)
    """Size in bytes."""
    type: Literal["save_weights_external"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsForSamplerRequest(ForbidExtra):
    """Request to save weights to sample from, under a name or directly into a new sampling session.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str | None = field(default=None, validator=field_validator())
    """Name of the checkpoint; omitted if sampling_session_seq_id is set."""
    sampling_session_seq_id: int | None = field(default=None, validator=field_validator())
    """Index among the session's sampling sessions, from 0; opens a sampling session on these weights. (wire 0.3.0 and later)"""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order. (wire 0.3.0 and later)"""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted; null keeps it. (wire 0.9.0 and later)"""
    user_metadata: dict[str, str] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the checkpoint. (wire 0.27.2 and later)"""
    kind: SamplingClientKind = field(default="snapshot", validator=field_validator())
    """Kind of the sampling client that is opened on the weights. (wire 0.38.0 and later)"""
    type: Literal["save_weights_for_sampler"] = field(default="save_weights_for_sampler", validator=field_validator())
    """Tag of the request."""


@define
class SaveWeightsForSamplerResponse(SaveSamplerWeightsMixin, AllowExtra):
    """Saved weights to sample from, as users see them.

    Wire: 0.1.0 and later.
    """

    _checkpoint_segments = CHECKPOINT_SEGMENTS

    _tinker_scheme = TINKER_SCHEME

    path: str
    """The tinker:// path of the saved weights."""
    type: Literal["save_weights_for_sampler"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsForSamplerResponseInternal(AllowExtra):
    """Result of save_weights_for_sampler, with a path or a sampling session, as requested.

    Wire: 0.3.0 and later.
    """

    path: str | None = field(default=None)
    """The tinker:// path of the saved weights."""
    sampling_session_id: str | None = field(default=None)
    """The sampling session that was opened."""
    type: Literal["save_weights_for_sampler"] | None = field(default=None)
    """Tag of the result."""


@define
class SaveWeightsRequest(ForbidExtra):
    """Request to save weights and optimizer state.

    Wire: 0.1.0 and later.
    """

    model_id: ModelID = field(validator=field_validator())
    """The model."""
    path: str | None = field(default=None, validator=field_validator())
    """Name of the checkpoint; null lets the server name it."""
    seq_id: int | None = field(default=None, validator=field_validator())
    """Sequence number among all operations of the model, from 1; operations run in this order. (wire 0.3.0 and later)"""
    ttl_seconds: int | None = field(default=None, validator=field_validator())
    """Seconds until the checkpoint is deleted; null keeps it. (wire 0.9.0 and later)"""
    overwrite: bool = field(default=False, validator=field_validator())
    """True if a checkpoint of this name may be replaced. (wire 0.20.0 and later)"""
    user_metadata: dict[str, str] | None = field(default=None, validator=field_validator())
    """Free keys and values of the user, kept with the checkpoint. (wire 0.27.2 and later)"""
    type: Literal["save_weights"] = field(default="save_weights", validator=field_validator())
    """Tag of the request."""


@define
class SaveWeightsResponse(SaveWeightsMixin, AllowExtra):
    """Result of save_weights.

    Wire: 0.1.0 and later.
    """

    _checkpoint_segments = CHECKPOINT_SEGMENTS

    _tinker_scheme = TINKER_SCHEME

    path: str
    """The tinker:// path of the saved weights."""
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
    """Owner of the key."""


@define
class SessionActive(AllowExtra):
    """The session is active.

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
    """Reason as text."""


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
    """Index among the session's events, from 0."""
    severity: Severity = field(validator=field_validator())
    """Severity of the event."""
    timestamp: datetime = field(validator=field_validator())
    """Time of the event."""
    duration: str = field(validator=field_validator())
    """Run time of the client, as H:MM:SS.ffffff."""


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
class SessionFailed(AllowExtra):
    """The session failed.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    category: SessionFailureCategory | str
    """Party that caused the failure; clients pass on unknown values."""
    reason: SessionFailedReason
    """Part that failed."""
    message: str
    """Error message."""
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
    """Kind of the request, for example ForwardBackward."""
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
Part of a session that failed.

Wire: 0.36.0 and later.
"""


SessionFailureCategory: TypeAlias = Literal["user", "internal"]
"""
Party that caused the failure of a session.

Wire: 0.36.0 and later.
"""


@define
class SessionFinishReason(ForbidExtra):
    """Reason why a client ends its session.

    Wire: 0.27.2 and later.
    """

    type: SessionFinishStatus = field(validator=field_validator())
    """Status at the end."""


SessionFinishStatus: TypeAlias = Literal["success", "errored", "interrupted"]
"""
Status with which a client ends its session.

Wire: 0.27.2 and later.
"""


@define
class SessionHeartbeatRequest(ForbidExtra):
    """Request to keep a session alive.

    Wire: 0.3.0 and later.
    """

    session_id: str = field(validator=field_validator())
    """The session."""
    type: Literal["session_heartbeat"] = field(default="session_heartbeat", validator=field_validator())
    """Tag of the request."""


@define
class SessionHeartbeatResponse(AllowExtra):
    """The session stays alive.

    Wire: 0.3.0 and later.

    A field that the server leaves out or garbles is None.
    """

    _essential = frozenset()

    type: Literal["session_heartbeat"] = field(default="session_heartbeat")
    """Tag of the response."""


@define
class SessionSearchCursor(AllowExtra):
    """Start of the next page.

    Wire: 0.36.0 and later.
    """

    last_created_at: datetime = field(validator=field_validator())
    """Creation time of the page's last session, with a time zone."""
    last_session_id: str = field(validator=field_validator())
    """The last session of the page."""


@define
class SessionSearchRequest(ForbidExtra):
    """Request to search sessions; each condition narrows the search.

    Wire: 0.36.0 and later.
    """

    session_id: str | None = field(default=None, validator=field_validator())
    """Only this session."""
    project_ids: list[str] | None = field(default=None, validator=field_validator())
    """Only sessions of these projects."""
    user_metadata: dict[str, str] = field(factory=dict, validator=field_validator())
    """Only sessions with these keys and values."""
    display_name: str | None = field(default=None, validator=field_validator(has_size(1)))
    """Only sessions with this name."""
    owner: SearchOwner = field(factory=OwnSearchOwner, validator=field_validator())
    """Owners of the sessions."""
    statuses: list[SessionStatusQuery] | None = field(default=None, validator=field_validator())
    """Only sessions with one of these statuses; null for any."""
    limit: int = field(default=50, validator=field_validator(at_least(1), at_most(200)))
    """Maximum number of sessions."""
    cursor: SessionSearchCursor | None = field(default=None, validator=field_validator())
    """Start of the page; null for the first."""


@define
class SessionSearchResponse(AllowExtra):
    """One page of search results.

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
    """Index among the session's events, from 0."""
    severity: Severity = field(validator=field_validator())
    """Severity of the event."""
    timestamp: datetime = field(validator=field_validator())
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


SessionStatus: TypeAlias = SessionFailed | SessionCancelled | ClientSessionFinished | SessionActive
"""
Status of a session.

Wire: 0.36.0 and later.
"""


SessionStatusQuery: TypeAlias = (
    ActiveSessionStatusQuery | CancelledSessionStatusQuery | FailedSessionStatusQuery | ClientFinishedSessionStatusQuery
)
"""
Status to search for.

Wire: 0.36.0 and later.
"""


@define
class SessionSummary(AllowExtra):
    """A session found by a search.

    Wire: 0.36.0 and later.

    A field that the server leaves out or garbles is None, except session_id.
    """

    _essential = frozenset({"session_id"})

    session_id: str
    """The session."""
    created_at: datetime
    """Creation time."""
    owner: str
    """Owner."""
    project_id: str
    """Project of the session."""
    checkpoints_count: int
    """Number of checkpoints of the session."""
    status: SessionStatus | None = field(default=None)
    """Status of the session; null if it is unknown."""
    display_name: str | None = field(default=None)
    """Name of the session."""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values of the user."""
    checkpoint_storage_bytes: int | None = field(default=None)
    """Size of the session's checkpoints in bytes."""


@define
class SessionTraceExportPollResponse(AllowExtra):
    """Status of the export of a trace.

    Wire: 0.24.1 and later.

    A field that the server leaves out or garbles is None, except status and url.
    """

    _essential = frozenset({"status", "url"})

    status: TraceExportStatus | str
    """Status of the export; clients pass on unknown values."""
    url: str | None = field(default=None)
    """Signed URL of the trace, once the trace is ready."""
    error: str | None = field(default=None)
    """Reason of the failure."""


@define
class SetCheckpointTtlRequest(ForbidExtra):
    """Request to set or remove the time after which a checkpoint is deleted.

    Wire: 0.13.1 and later.
    """

    ttl_seconds: int | None = field(validator=field_validator())
    """Seconds from now until deletion; null, which clients send explicitly, keeps the checkpoint."""


Severity: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
"""
Severity of an event.

Wire: 0.1.0 and later.
"""


StopCondition: TypeAlias = str | list[str] | list[int]
"""
Stop condition of sampling: a string, one of several strings, or one of several token ids.

Wire: 0.1.0 and later.
"""


StopReason: TypeAlias = Literal["length", "stop"]
"""
Reason why a sample ended: max_tokens (length) or a stop condition (stop).

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
    """True if the usage is free. (wire 0.38.0 and later)"""


@define
class StoredCredentialsV1(AllowExtra):
    """The credentials file of a user; never sent.

    Wire: 0.26.2 and later.
    """

    version: Literal[1] = field(default=1)
    """Version of the file format."""
    default: str | None = field(default=None)
    """Entry of keys that is in use; null for none."""
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
    """Name for create_model and create_sampling_session."""
    max_context_length: int | None = field(default=None)
    """Maximum number of tokens of prompt and sample together. (wire 0.18.2 and later)"""
    trainable: bool | None = field(default=None)
    """True if create_model accepts the model. (wire 0.26.2 and later)"""
    sampleable: bool | None = field(default=None)
    """True if create_sampling_session accepts the model. (wire 0.26.2 and later)"""


@define
class TelemetryBatch(AllowExtra):
    """Events of one client, collected before they are sent.

    Wire: 0.1.0 and later.
    """

    events: list[TelemetryEvent]
    """The events."""
    platform: str
    """Operating system, for example Linux."""
    sdk_version: str
    """Wire version of the client."""
    session_id: str
    """The session that the events belong to."""
    process_uuid: str | None = field(default=None)
    """Identifies the process of the client, a UUID. (wire 0.24.1 and later)"""


@define
class TelemetryResponse(AllowExtra):
    """The events are accepted.

    Wire: 0.1.0 and later.
    """

    status: Literal["accepted"] = field(default="accepted")
    """Always "accepted"."""


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
class TelemetrySendRequest(ForbidExtra):
    """Request to report events of one client.

    Wire: 0.3.0 and later.
    """

    events: list[TelemetryEvent] = field(validator=field_validator())
    """The events."""
    platform: str = field(validator=field_validator())
    """Operating system, for example Linux."""
    sdk_version: str = field(validator=field_validator())
    """Wire version of the client."""
    session_id: str = field(validator=field_validator())
    """The session that the events belong to."""
    process_uuid: str | None = field(default=None, validator=field_validator())
    """Identifies the process of the client, a UUID. (wire 0.24.1 and later)"""


@define(kw_only=False)
class TensorData(TensorDataMixin, DataclassMethods, ForbidExtra):
    """A tensor, its values row by row in one flat list.

    Wire: 0.1.0 and later.

    Example:
        >>> tensor = tinker.TensorData(data=[1.0, 2.0, 3.0, 4.0], dtype="float32", shape=[2, 2])
        >>> tensor.to_numpy().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """

    _loss_input_dtypes = LOSS_INPUT_DTYPES

    _data: Sequence[float] | Array = field(alias="data")
    """Flat values in row-major order; whole numbers when dtype is int64."""
    dtype: TensorDtype = field(validator=field_validator())
    """Kind of the numbers."""
    shape: list[int] | None = field(default=None, validator=field_validator())
    """Length of each dimension; null means one dimension as long as data."""
    sparse_crow_indices: Sequence[int] | Array | None = field(default=None, validator=field_validator())
    """For a sparse matrix (CSR), the start of each row in data; rows + 1 numbers. (wire 0.18.2 and later)"""
    sparse_col_indices: Sequence[int] | Array | None = field(default=None, validator=field_validator())
    """For a sparse matrix (CSR), the column of each value of data. (wire 0.18.2 and later)"""


LossFnInputs: TypeAlias = dict[str, TensorData]
"""
Tensors of a loss by name, mostly one number per input token; sequence_ratio_mask since wire 0.34.0. A plain
list under one of the names has the dtype that LOSS_INPUT_DTYPES gives.

Wire: 0.1.0 and later.
"""


LossFnOutput: TypeAlias = dict[str, TensorData]
"""
Output tensors of a loss for one datum, by name, such as logprobs (per target token).

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
Tensors of a loss by name, as in LossFnInputs.

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
Status of the export of a trace.

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
Resource that was used.

Wire: 0.23.4 and later.
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
    """Owner."""
    is_lora: bool
    """True if an adapter is trained."""
    last_request_time: datetime
    """Time of the last request."""
    corrupted: bool = field(default=False)
    """True if an error has made the run unusable."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    last_checkpoint: Checkpoint | None = field(default=None)
    """Newest checkpoint to resume from."""
    last_sampler_checkpoint: Checkpoint | None = field(default=None)
    """Newest checkpoint to sample from."""
    user_metadata: dict[str, str] | None = field(default=None)
    """Free keys and values from create_model. (wire 0.2.0 and later)"""


@define
class TrainingRunIdsResponse(AllowExtra):
    """Identifiers of training runs; no endpoint returns it.

    Wire: 0.1.0 to before 0.2.0.
    """

    training_run_ids: list[str]
    """The training runs."""
    has_more: bool
    """True if there are more runs."""


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
    """Position of the page."""


@define
class TryAgainResponse(AllowExtra):
    """The result is not ready yet.

    Wire: 0.1.0 and later.
    """

    request_id: str
    """The work."""
    queue_state: QueueState | str
    """Reason why the result is not ready; clients pass on unknown values. (wire 0.2.0 and later)"""
    queue_state_reason: str | None = field(default=None)
    """The reason as text for the user. (wire 0.7.0 and later)"""
    type: Literal["try_again"] = field(default="try_again")
    """Tag of the response."""


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
    """Index among the session's events, from 0."""
    severity: Severity = field(validator=field_validator())
    """Severity of the event."""
    timestamp: datetime = field(validator=field_validator())
    """Time of the event."""
    error_type: str = field(validator=field_validator())
    """Class of the exception."""
    error_message: str = field(validator=field_validator())
    """Text of the exception."""
    traceback: str | None = field(default=None, validator=field_validator())
    """Traceback of the exception."""


TelemetryEvent: TypeAlias = SessionStartEvent | SessionEndEvent | UnhandledExceptionEvent | GenericEvent
"""
An event in a client.

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
class UnloadModelRequest(ForbidExtra):
    """Request to unload a model.

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
    """The unloaded model."""
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
A result, a failure or a wait, without a wrapper; the caller knows which result to expect.

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
    """The model of the work."""
    sample_sequence_ids: list[str] | None = field(default=None)
    """Identifier of each sample of asample, in order; clients of these versions require it. (wire 0.26.2 and later)"""


@define
class UserSearchOwner(ForbidExtra):
    """Sessions of the listed users.

    Wire: 0.36.0 and later.
    """

    owner_urns: list[str] = field(validator=field_validator(has_size(1, 10)))
    """The users, 1 to 10 of them."""
    type: Literal["user"] = field(default="user", validator=field_validator())
    """Tag of the choice."""


SearchOwner: TypeAlias = OwnSearchOwner | AccessibleSearchOwner | UserSearchOwner
"""
Owners of the sessions to search.

Wire: 0.36.0 and later.
"""


@define
class ValidationErrorBody(AllowExtra):
    """Body of a 422, one item per error.

    Wire: 0.1.0 and later.
    """

    detail: list[ValidationErrorItem]
    """All errors."""


@define
class ValidationErrorItem(AllowExtra):
    """One error in a request.

    Wire: 0.1.0 and later.
    """

    loc: list[LocationPart]
    """Path to the wrong field, from the outside in; starts with body, path or query."""
    msg: str
    """Error message for the field."""
    type: str
    """Kind of the error, for programs."""


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
    """Name of the checkpoint; omitted if sampling_session_seq_id is set."""
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


@define
class WeightsInfoRequest(ForbidExtra):
    """Request to describe the base model and adapter of saved weights.

    Wire: 0.6.0 and later.
    """

    tinker_path: str = field(validator=field_validator())
    """The tinker:// path of the weights."""


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
    """True if the weights belong to an adapter."""
    lora_rank: int | None = field(default=None)
    """Inner dimension of the adapter."""
    train_unembed: bool | None = field(default=None)
    """True if the unembedding is adapted. (wire 0.8.1 and later)"""
    train_mlp: bool | None = field(default=None)
    """True if the MLP layers are adapted. (wire 0.8.1 and later)"""
    train_attn: bool | None = field(default=None)
    """True if the attention layers are adapted. (wire 0.8.1 and later)"""
    optimizer_config: OptimizerConfig = field(factory=AdamOptimizerConfig)
    """Optimizer of a model with these weights. (wire 0.29.1 and later)"""


@define
class WhoamiResponse(AllowExtra):
    """Identity of the caller, as clients read it from their JWT; never on the wire.

    Wire: 0.23.4 and later.
    """

    user_urn: str
    """The user."""
    email: str | None = field(default=None)
    """Address of the user."""
    org_urn: str | None = field(default=None)
    """The organization. (wire 0.34.0 and later)"""
