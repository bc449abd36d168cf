# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="create_session",
    tag="session",
    method="POST",
    path="/api/v1/create_session",
    get_request=lambda: models.CreateSessionRequest,
    get_results=lambda: {
        200: models.CreateSessionResponse,
        401: models.ErrorBody,
        402: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def create_session(
    *,
    body: models.CreateSessionRequest,
) -> Call[models.CreateSessionResponse]:
    """Open a session."""
    return Call(
        OPERATION,
        body=body,
    )
