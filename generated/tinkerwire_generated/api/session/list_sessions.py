# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ... import models

OPERATION = Operation(
    name="list_sessions",
    tag="session",
    method="GET",
    path="/api/v1/sessions",
    get_results=lambda: {
        200: models.ListSessionsResponse,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def list_sessions(
    *,
    limit: int | UnsetType = 20,
    offset: int | UnsetType = 0,
    access_scope: models.AccessScope | UnsetType = UNSET,
) -> Call[models.ListSessionsResponse]:
    """List sessions; the response is one page."""
    return Call(
        OPERATION,
        query={
            "limit": limit,
            "offset": offset,
            "access_scope": access_scope,
        },
    )
