# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family session."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)

from .training import ModelID

AccessScope: TypeAlias = Literal["owned", "accessible"]
"""
Sessions that the caller owns, or all that the caller may see.

Wire: 0.15.0 and later.
"""


@define
class AssignSessionProjectRequest(ForbidExtra):
    """Request to move a session to a project.

    Wire: 0.22.7 and later.
    """

    project_id: str = field(validator=field_validator())
    """The project."""


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
    """Wire version of the client, for example 0.3.0."""
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
class FinishSessionRequest(ForbidExtra):
    """Request to end a session.

    Wire: 0.27.2 and later.
    """

    reason: SessionFinishReason = field(validator=field_validator())
    """Reason."""
    detail: str | None = field(validator=field_validator())
    """Details as text; clients send null explicitly."""


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
class ListSessionsResponse(AllowExtra):
    """One page of sessions.

    Wire: 0.5.1 and later.

    A field that the server leaves out or garbles is None, except sessions.
    """

    _essential = frozenset({"sessions"})

    sessions: list[str]
    """Identifiers of the sessions."""


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


TraceExportStatus: TypeAlias = Literal["pending", "ready", "failed"]
"""
Status of the export of a trace.

Wire: 0.24.1 and later.
"""
