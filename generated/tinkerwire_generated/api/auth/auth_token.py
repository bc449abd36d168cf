# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="auth_token",
    tag="auth",
    method="POST",
    path="/api/v1/auth/token",
    get_request=lambda: models.AuthTokenRequest,
    get_results=lambda: {
        200: models.AuthTokenResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def auth_token(
    *,
    body: models.AuthTokenRequest,
) -> Call[models.AuthTokenResponse]:
    """Exchange the key in X-API-Key for a JWT; only if client/config requires it."""
    return Call(
        OPERATION,
        body=body,
    )
