# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CreateApiKeyRequest, CreatedApiKey, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="create_api_key",
    tag="auth",
    method="POST",
    path="/api/v1/auth/apikey",
    request=CreateApiKeyRequest,
    results={
        200: CreatedApiKey,
        401: ErrorBody,
        422: ValidationErrorBody,
    },
)


def create_api_key(
    *,
    body: CreateApiKeyRequest,
) -> Call[CreatedApiKey]:
    """Create an API key; the token of the sign-in goes in Authorization."""
    return Call(
        OPERATION,
        body=body,
    )
