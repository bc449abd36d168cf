# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="session_heartbeat",
    tag="session",
    method="POST",
    path="/api/v1/session_heartbeat",
    get_request=lambda: models.SessionHeartbeatRequest,
    get_results=lambda: {
        200: models.SessionHeartbeatResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        410: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def session_heartbeat(
    *,
    body: models.SessionHeartbeatRequest,
) -> Call[models.SessionHeartbeatResponse]:
    """Keep a session alive; sent every 10 s."""
    return Call(
        OPERATION,
        body=body,
    )
