# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="create_custom_loss",
    tag="training",
    method="POST",
    path="/api/v1/create_custom_loss",
    get_request=lambda: models.CreateCustomLossRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def create_custom_loss(
    *,
    body: models.CreateCustomLossRequest,
) -> Call[models.UntypedAPIFuture]:
    """Upload a loss for the server to compute; the result is CreateCustomLossResponse."""
    return Call(
        OPERATION,
        body=body,
    )
