# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="copy_weights",
    tag="weights",
    method="POST",
    path="/api/v1/copy_weights",
    get_request=lambda: models.CopyWeightsRequest,
    get_results=lambda: {
        200: models.CopyWeightsResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def copy_weights(
    *,
    body: models.CopyWeightsRequest,
) -> Call[models.CopyWeightsResponse]:
    """Copy another user's saved weights into a project; the response comes when the copy is complete."""
    return Call(
        OPERATION,
        body=body,
    )
