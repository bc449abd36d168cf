"""AdminClient: the audit log, the usage and the storage of an organization."""

from __future__ import annotations

from datetime import date, datetime, timezone

from tinkerwire_base.timestamps import parse_timestamp
from tinkerwire_base.unset import UNSET
from tinkerwire_base.validators import require_optional_text, validator_of
from tinkerwire_generated import models
from tinkerwire_generated.api.admin import get_audit_log, get_billing_usage, get_checkpoint_storage_usage

from .._futures.future import APIFuture
from .base import RestClientBase


class AdminClient(RestClientBase):
    """Client for the audit log, the usage and the storage of an organization."""

    def get_audit_log(
        self, event_type: models.AuditEventType = "all", day: date | None = None
    ) -> APIFuture[models.AuditLogResponse]:
        """Return the audit log of one day; wire 0.20.0 and later.

        Args:
            event_type: which events.
            day: of which day; None lets the server choose.

        Raises:
            ValueError, TypeError: an invalid kind of event or day; nothing was sent.
        """
        validator_of(models.AuditEventType)("event_type", event_type)
        if day is not None and not isinstance(day, date):
            raise TypeError(f"day: expected a datetime.date, got {type(day).__name__}")
        only_day = day.date() if isinstance(day, datetime) else day
        return self._start_call(get_audit_log(event_type=event_type, day=UNSET if only_day is None else only_day))

    async def get_audit_log_async(
        self, event_type: models.AuditEventType = "all", day: date | None = None
    ) -> models.AuditLogResponse:
        """Await :meth:`get_audit_log`, and return its result."""
        return await self.get_audit_log(event_type, day)

    def get_billing_usage(
        self, starting_on: datetime | str, ending_before: datetime | str
    ) -> APIFuture[models.BillingUsageResponse]:
        """Return the usage in a time range; wire 0.23.4 and later.

        Args:
            starting_on: its start, a datetime or RFC 3339 text; without an offset it counts as UTC.
            ending_before: end of the range, excluded.

        Raises:
            ValueError, TypeError: an invalid time; nothing was sent.
        """
        start, end = _time("starting_on", starting_on), _time("ending_before", ending_before)
        return self._start_call(get_billing_usage(starting_on=start, ending_before=end))

    async def get_billing_usage_async(
        self, starting_on: datetime | str, ending_before: datetime | str
    ) -> models.BillingUsageResponse:
        """Await :meth:`get_billing_usage`, and return its result."""
        return await self.get_billing_usage(starting_on, ending_before)

    def get_current_checkpoint_storage_usage(
        self, project_id: str | None = None
    ) -> APIFuture[models.CurrentCheckpointStorageUsageResponse]:
        """Return the current storage of checkpoints, of one project or (None) of all; wire 0.32.0 and later."""
        require_optional_text("project_id", project_id)
        return self._start_call(get_checkpoint_storage_usage(project_id=UNSET if project_id is None else project_id))

    async def get_current_checkpoint_storage_usage_async(
        self, project_id: str | None = None
    ) -> models.CurrentCheckpointStorageUsageResponse:
        """Await :meth:`get_current_checkpoint_storage_usage`, and return its result."""
        return await self.get_current_checkpoint_storage_usage(project_id)


def _time(name: str, value: datetime | str) -> datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    try:
        return parse_timestamp(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
