# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="client_config",
    tag="auth",
    method="POST",
    path="/api/v1/client/config",
    get_request=lambda: models.ClientConfigRequest,
    get_results=lambda: {
        200: models.ClientConfigResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def client_config(
    *,
    body: models.ClientConfigRequest,
) -> Call[models.ClientConfigResponse]:
    """Get the settings that the server requires; the first call of each client, a 404 is an error."""
    return Call(
        OPERATION,
        body=body,
    )
