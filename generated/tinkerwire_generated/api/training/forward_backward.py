# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, ForwardBackwardRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="forward_backward",
    tag="training",
    method="POST",
    path="/api/v1/forward_backward",
    request=ForwardBackwardRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def forward_backward(
    *,
    body: ForwardBackwardRequest,
) -> Call[UntypedAPIFuture]:
    """Compute a loss and add its gradients to those of the model; the result is ForwardBackwardOutput."""
    return Call(
        OPERATION,
        body=body,
    )
