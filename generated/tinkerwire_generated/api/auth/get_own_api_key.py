# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="get_own_api_key",
    tag="auth",
    method="GET",
    path="/api/v1/auth/apikey/me",
    get_results=lambda: {
        200: models.SelfApiKeyResponse,
        401: models.ErrorBody,
    },
)


def get_own_api_key() -> Call[models.SelfApiKeyResponse]:
    """Describe the API key that the request is sent with."""
    return Call(
        OPERATION,
    )
