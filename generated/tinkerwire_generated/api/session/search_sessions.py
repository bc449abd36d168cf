# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="search_sessions",
    tag="session",
    method="POST",
    path="/api/v1/sessions/search",
    get_request=lambda: models.SessionSearchRequest,
    get_results=lambda: {
        200: models.SessionSearchResponse,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def search_sessions(
    *,
    body: models.SessionSearchRequest,
) -> Call[models.SessionSearchResponse]:
    """Search sessions; the response is one page."""
    return Call(
        OPERATION,
        body=body,
    )
