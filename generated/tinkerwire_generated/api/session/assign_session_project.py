# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="assign_session_project",
    tag="session",
    method="PUT",
    path="/api/v1/sessions/{session_id}/project",
    get_request=lambda: models.AssignSessionProjectRequest,
    get_results=lambda: {
        200: None,
        204: None,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def assign_session_project(
    session_id: str,
    *,
    body: models.AssignSessionProjectRequest,
) -> Call[None]:
    """Move a session to a project."""
    return Call(
        OPERATION,
        path={
            "session_id": session_id,
        },
        body=body,
    )
