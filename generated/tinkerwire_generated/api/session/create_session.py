# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CreateSessionRequest, CreateSessionResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="create_session",
    tag="session",
    method="POST",
    path="/api/v1/create_session",
    request=CreateSessionRequest,
    results={
        200: CreateSessionResponse,
        401: ErrorBody,
        402: ErrorBody,
        422: ValidationErrorBody,
    },
)


def create_session(
    *,
    body: CreateSessionRequest,
) -> Call[CreateSessionResponse]:
    """Open a session."""
    return Call(
        OPERATION,
        body=body,
    )
