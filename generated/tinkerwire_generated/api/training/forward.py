# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, ForwardRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="forward",
    tag="training",
    method="POST",
    path="/api/v1/forward",
    request=ForwardRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def forward(
    *,
    body: ForwardRequest,
) -> Call[UntypedAPIFuture]:
    """Compute a loss without gradients; the result is ForwardBackwardOutput."""
    return Call(
        OPERATION,
        body=body,
    )
