# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ClientConfigRequest, ClientDynamicConfigResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="client_dynamic_config",
    tag="auth",
    method="POST",
    path="/api/v1/client/dynamic_config",
    request=ClientConfigRequest,
    results={
        200: ClientDynamicConfigResponse,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def client_dynamic_config(
    *,
    body: ClientConfigRequest,
) -> Call[ClientDynamicConfigResponse]:
    """Get the settings that may change; clients poll it, and a 404 means the defaults."""
    return Call(
        OPERATION,
        body=body,
    )
