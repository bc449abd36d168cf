# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="finish_session",
    tag="session",
    method="POST",
    path="/api/v1/sessions/{session_id}/finish",
    get_request=lambda: models.FinishSessionRequest,
    get_results=lambda: {
        200: None,
        204: None,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def finish_session(
    session_id: str,
    *,
    body: models.FinishSessionRequest,
) -> Call[None]:
    """End a session."""
    return Call(
        OPERATION,
        path={
            "session_id": session_id,
        },
        body=body,
    )
