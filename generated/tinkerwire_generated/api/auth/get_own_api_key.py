# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SelfApiKeyResponse

OPERATION = Operation(
    name="get_own_api_key",
    tag="auth",
    method="GET",
    path="/api/v1/auth/apikey/me",
    results={
        200: SelfApiKeyResponse,
        401: ErrorBody,
    },
)


def get_own_api_key() -> Call[SelfApiKeyResponse]:
    """Describe the API key that the request is sent with."""
    return Call(
        OPERATION,
    )
