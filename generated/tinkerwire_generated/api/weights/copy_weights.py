# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CopyWeightsRequest, CopyWeightsResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="copy_weights",
    tag="weights",
    method="POST",
    path="/api/v1/copy_weights",
    request=CopyWeightsRequest,
    results={
        200: CopyWeightsResponse,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def copy_weights(
    *,
    body: CopyWeightsRequest,
) -> Call[CopyWeightsResponse]:
    """Copy another user's saved weights into a project; the response comes when the copy is complete."""
    return Call(
        OPERATION,
        body=body,
    )
