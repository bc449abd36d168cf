# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="delete_own_api_key",
    tag="auth",
    method="DELETE",
    path="/api/v1/auth/apikey/me",
    get_results=lambda: {
        200: None,
        204: None,
        401: models.ErrorBody,
        404: models.ErrorBody,
    },
)


def delete_own_api_key() -> Call[None]:
    """Delete the API key that the request is sent with."""
    return Call(
        OPERATION,
    )
