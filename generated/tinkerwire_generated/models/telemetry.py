# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family telemetry."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)

EventType: TypeAlias = Literal["SESSION_START", "SESSION_END", "UNHANDLED_EXCEPTION", "GENERIC_EVENT"]
"""
Kind of an event.

Wire: 0.1.0 and later.
"""


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


Severity: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
"""
Severity of an event.

Wire: 0.1.0 and later.
"""


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
