# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, LoadWeightsRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="load_weights",
    tag="weights",
    method="POST",
    path="/api/v1/load_weights",
    request=LoadWeightsRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def load_weights(
    *,
    body: LoadWeightsRequest,
) -> Call[UntypedAPIFuture]:
    """Load saved weights into a model; the result is LoadWeightsResponse."""
    return Call(
        OPERATION,
        body=body,
    )
