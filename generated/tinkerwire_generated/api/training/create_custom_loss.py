# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CreateCustomLossRequest, ErrorBody, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="create_custom_loss",
    tag="training",
    method="POST",
    path="/api/v1/create_custom_loss",
    request=CreateCustomLossRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def create_custom_loss(
    *,
    body: CreateCustomLossRequest,
) -> Call[UntypedAPIFuture]:
    """Upload a loss for the server to compute; the result is CreateCustomLossResponse."""
    return Call(
        OPERATION,
        body=body,
    )
