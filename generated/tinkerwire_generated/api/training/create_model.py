# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CreateModelRequest, ErrorBody, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="create_model",
    tag="training",
    method="POST",
    path="/api/v1/create_model",
    request=CreateModelRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def create_model(
    *,
    body: CreateModelRequest,
) -> Call[UntypedAPIFuture]:
    """Create a model to train, a base model with a LoRA adapter; the result is CreateModelResponse."""
    return Call(
        OPERATION,
        body=body,
    )
