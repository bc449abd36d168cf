# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="save_weights",
    tag="weights",
    method="POST",
    path="/api/v1/save_weights",
    get_request=lambda: models.SaveWeightsRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def save_weights(
    *,
    body: models.SaveWeightsRequest,
) -> Call[models.UntypedAPIFuture]:
    """Save weights and optimizer state for resuming; the result is SaveWeightsResponse."""
    return Call(
        OPERATION,
        body=body,
    )
