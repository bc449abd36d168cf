# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="create_model",
    tag="training",
    method="POST",
    path="/api/v1/create_model",
    get_request=lambda: models.CreateModelRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def create_model(
    *,
    body: models.CreateModelRequest,
) -> Call[models.UntypedAPIFuture]:
    """Create a model to train, a base model with a LoRA adapter; the result is CreateModelResponse."""
    return Call(
        OPERATION,
        body=body,
    )
