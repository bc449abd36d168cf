# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ...models import AccessScope, ErrorBody, ListSessionsResponse, ValidationErrorBody

OPERATION = Operation(
    name="list_sessions",
    tag="session",
    method="GET",
    path="/api/v1/sessions",
    results={
        200: ListSessionsResponse,
        401: ErrorBody,
        422: ValidationErrorBody,
    },
)


def list_sessions(
    *,
    limit: int | UnsetType = 20,
    offset: int | UnsetType = 0,
    access_scope: AccessScope | UnsetType = UNSET,
) -> Call[ListSessionsResponse]:
    """List sessions; the response is one page."""
    return Call(
        OPERATION,
        query={
            "limit": limit,
            "offset": offset,
            "access_scope": access_scope,
        },
    )
