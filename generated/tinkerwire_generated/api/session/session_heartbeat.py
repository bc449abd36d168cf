# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SessionHeartbeatRequest, SessionHeartbeatResponse, ValidationErrorBody

OPERATION = Operation(
    name="session_heartbeat",
    tag="session",
    method="POST",
    path="/api/v1/session_heartbeat",
    request=SessionHeartbeatRequest,
    results={
        200: SessionHeartbeatResponse,
        401: ErrorBody,
        404: ErrorBody,
        410: ErrorBody,
        422: ValidationErrorBody,
    },
)


def session_heartbeat(
    *,
    body: SessionHeartbeatRequest,
) -> Call[SessionHeartbeatResponse]:
    """Keep a session alive; sent every 10 s."""
    return Call(
        OPERATION,
        body=body,
    )
