# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ClientConfigRequest, ClientConfigResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="client_config",
    tag="auth",
    method="POST",
    path="/api/v1/client/config",
    request=ClientConfigRequest,
    results={
        200: ClientConfigResponse,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def client_config(
    *,
    body: ClientConfigRequest,
) -> Call[ClientConfigResponse]:
    """Get the settings that the server requires; the first call of each client, a 404 is an error."""
    return Call(
        OPERATION,
        body=body,
    )
