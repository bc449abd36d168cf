# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody

OPERATION = Operation(
    name="delete_own_api_key",
    tag="auth",
    method="DELETE",
    path="/api/v1/auth/apikey/me",
    results={
        200: None,
        204: None,
        401: ErrorBody,
        404: ErrorBody,
    },
)


def delete_own_api_key() -> Call[None]:
    """Delete the API key that the request is sent with."""
    return Call(
        OPERATION,
    )
