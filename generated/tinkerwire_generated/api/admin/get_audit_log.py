# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from datetime import date

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ... import models

OPERATION = Operation(
    name="get_audit_log",
    tag="admin",
    method="GET",
    path="/api/v1/audit",
    get_results=lambda: {
        200: models.AuditLogResponse,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def get_audit_log(
    *,
    event_type: models.AuditEventType | UnsetType = UNSET,
    day: date | UnsetType = UNSET,
) -> Call[models.AuditLogResponse]:
    """Read the audit log."""
    return Call(
        OPERATION,
        query={
            "event_type": event_type,
            "day": day,
        },
    )
