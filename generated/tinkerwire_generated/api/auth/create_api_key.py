# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="create_api_key",
    tag="auth",
    method="POST",
    path="/api/v1/auth/apikey",
    get_request=lambda: models.CreateApiKeyRequest,
    get_results=lambda: {
        200: models.CreatedApiKey,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def create_api_key(
    *,
    body: models.CreateApiKeyRequest,
) -> Call[models.CreatedApiKey]:
    """Create an API key; the token of the sign-in goes in Authorization."""
    return Call(
        OPERATION,
        body=body,
    )
