# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SessionSearchRequest, SessionSearchResponse, ValidationErrorBody

OPERATION = Operation(
    name="search_sessions",
    tag="session",
    method="POST",
    path="/api/v1/sessions/search",
    request=SessionSearchRequest,
    results={
        200: SessionSearchResponse,
        401: ErrorBody,
        422: ValidationErrorBody,
    },
)


def search_sessions(
    *,
    body: SessionSearchRequest,
) -> Call[SessionSearchResponse]:
    """Search sessions; the response is one page."""
    return Call(
        OPERATION,
        body=body,
    )
