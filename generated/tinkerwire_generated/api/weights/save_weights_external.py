# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SaveWeightsExternalRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="save_weights_external",
    tag="weights",
    method="POST",
    path="/api/v1/save_weights_external",
    request=SaveWeightsExternalRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def save_weights_external(
    *,
    body: SaveWeightsExternalRequest,
) -> Call[UntypedAPIFuture]:
    """Save weights to download them; the result is SaveWeightsExternalResponseInternal."""
    return Call(
        OPERATION,
        body=body,
    )
