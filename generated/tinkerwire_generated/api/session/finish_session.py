# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, FinishSessionRequest, ValidationErrorBody

OPERATION = Operation(
    name="finish_session",
    tag="session",
    method="POST",
    path="/api/v1/sessions/{session_id}/finish",
    request=FinishSessionRequest,
    results={
        200: None,
        204: None,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def finish_session(
    session_id: str,
    *,
    body: FinishSessionRequest,
) -> Call[None]:
    """End a session."""
    return Call(
        OPERATION,
        path={
            "session_id": session_id,
        },
        body=body,
    )
