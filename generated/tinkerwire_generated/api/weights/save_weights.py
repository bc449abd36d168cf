# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SaveWeightsRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="save_weights",
    tag="weights",
    method="POST",
    path="/api/v1/save_weights",
    request=SaveWeightsRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def save_weights(
    *,
    body: SaveWeightsRequest,
) -> Call[UntypedAPIFuture]:
    """Save weights and optimizer state for resuming; the result is SaveWeightsResponse."""
    return Call(
        OPERATION,
        body=body,
    )
