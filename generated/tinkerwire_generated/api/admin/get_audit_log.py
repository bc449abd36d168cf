# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from datetime import date

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ...models import AuditEventType, AuditLogResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="get_audit_log",
    tag="admin",
    method="GET",
    path="/api/v1/audit",
    results={
        200: AuditLogResponse,
        401: ErrorBody,
        422: ValidationErrorBody,
    },
)


def get_audit_log(
    *,
    event_type: AuditEventType | UnsetType = UNSET,
    day: date | UnsetType = UNSET,
) -> Call[AuditLogResponse]:
    """Read the audit log."""
    return Call(
        OPERATION,
        query={
            "event_type": event_type,
            "day": day,
        },
    )
