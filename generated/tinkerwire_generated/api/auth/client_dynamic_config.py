# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="client_dynamic_config",
    tag="auth",
    method="POST",
    path="/api/v1/client/dynamic_config",
    get_request=lambda: models.ClientConfigRequest,
    get_results=lambda: {
        200: models.ClientDynamicConfigResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def client_dynamic_config(
    *,
    body: models.ClientConfigRequest,
) -> Call[models.ClientDynamicConfigResponse]:
    """Get the settings that may change; clients poll it, and a 404 means the defaults."""
    return Call(
        OPERATION,
        body=body,
    )
