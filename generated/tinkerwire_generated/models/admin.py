# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family admin."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, ForbidExtra, define

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
    """Model affected by the event, on events of checkpoints only; event_details has it too."""
    tinker_path: str | None = field(default=None)
    """The tinker:// path of the affected weights, on events of checkpoints only; event_details has it too."""
    purpose: str | None = field(default=None)
    """Purpose of the event, on reads of checkpoints only; event_details has it too."""
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
class GetBillingUsageRequest(ForbidExtra):
    """Span of time of the usage; its fields are sent as query parameters.

    Wire: 0.23.4 and later.
    """

    starting_on: datetime
    """Start of the span, inclusive, on the hour in UTC; not in the future."""
    ending_before: datetime
    """End of the span, exclusive, on the hour in UTC; at most 14 days after starting_on."""


@define
class GetCurrentCheckpointStorageUsageRequest(ForbidExtra):
    """Filter of the storage; its fields are sent as query parameters.

    Wire: 0.32.0 and later.
    """

    project_id: str | None = field(default=None)
    """Only this project; null for all."""


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
