# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, OptimStepRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="optim_step",
    tag="training",
    method="POST",
    path="/api/v1/optim_step",
    request=OptimStepRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def optim_step(
    *,
    body: OptimStepRequest,
) -> Call[UntypedAPIFuture]:
    """Update the weights with the accumulated gradients and clear them; the result is OptimStepResponse."""
    return Call(
        OPERATION,
        body=body,
    )
