# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family search."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    at_least,
    at_most,
    field_validator,
    has_size,
)


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
class CancelledSessionStatusQuery(ForbidExtra):
    """Sessions that were cancelled.

    Wire: 0.36.0 and later.
    """

    type: Literal["cancelled"] = field(default="cancelled", validator=field_validator())
    """Tag of the choice."""


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
class FailedSessionStatusQuery(ForbidExtra):
    """Sessions that failed.

    Wire: 0.36.0 and later.
    """

    type: Literal["failed"] = field(default="failed", validator=field_validator())
    """Tag of the choice."""


@define
class OwnSearchOwner(ForbidExtra):
    """Sessions of the caller.

    Wire: 0.36.0 and later.
    """

    type: Literal["own"] = field(default="own", validator=field_validator())
    """Tag of the choice."""


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
    """Request to search sessions; all conditions hold, but of session_id and display_name one is enough.

    Wire: 0.36.0 and later.
    """

    session_id: str | None = field(default=None, validator=field_validator())
    """Only this session, and those that display_name finds; null for any."""
    project_ids: list[str] | None = field(default=None, validator=field_validator())
    """Only sessions of these projects, which the caller may list; null for all that the caller may list."""
    user_metadata: dict[str, str] = field(factory=dict, validator=field_validator())
    """Only sessions with all of these keys and values."""
    display_name: str | None = field(default=None, validator=field_validator(has_size(1)))
    """Words that must all be in the name, in any case, as parts of it; session_id finds more sessions."""
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
