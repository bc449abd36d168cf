# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ... import models

OPERATION = Operation(
    name="get_session",
    tag="session",
    method="GET",
    path="/api/v1/sessions/{session_id}",
    get_results=lambda: {
        200: models.GetSessionResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def get_session(
    session_id: str,
    *,
    access_scope: models.AccessScope | UnsetType = UNSET,
) -> Call[models.GetSessionResponse]:
    """List the training runs and samplers of a session."""
    return Call(
        OPERATION,
        path={
            "session_id": session_id,
        },
        query={
            "access_scope": access_scope,
        },
    )
