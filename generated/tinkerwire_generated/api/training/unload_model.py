# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, UnloadModelRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="unload_model",
    tag="training",
    method="POST",
    path="/api/v1/unload_model",
    request=UnloadModelRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def unload_model(
    *,
    body: UnloadModelRequest,
) -> Call[UntypedAPIFuture]:
    """Unload a model; the result is UnloadModelResponse."""
    return Call(
        OPERATION,
        body=body,
    )
