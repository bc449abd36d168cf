# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import AssignSessionProjectRequest, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="assign_session_project",
    tag="session",
    method="PUT",
    path="/api/v1/sessions/{session_id}/project",
    request=AssignSessionProjectRequest,
    results={
        200: None,
        204: None,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def assign_session_project(
    session_id: str,
    *,
    body: AssignSessionProjectRequest,
) -> Call[None]:
    """Move a session to a project."""
    return Call(
        OPERATION,
        path={
            "session_id": session_id,
        },
        body=body,
    )
