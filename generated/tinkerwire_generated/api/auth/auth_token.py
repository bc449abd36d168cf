# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import AuthTokenRequest, AuthTokenResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="auth_token",
    tag="auth",
    method="POST",
    path="/api/v1/auth/token",
    request=AuthTokenRequest,
    results={
        200: AuthTokenResponse,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def auth_token(
    *,
    body: AuthTokenRequest,
) -> Call[AuthTokenResponse]:
    """Exchange the key in X-API-Key for a JWT; only if client/config requires it."""
    return Call(
        OPERATION,
        body=body,
    )
