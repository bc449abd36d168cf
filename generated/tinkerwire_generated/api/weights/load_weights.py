# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="load_weights",
    tag="weights",
    method="POST",
    path="/api/v1/load_weights",
    get_request=lambda: models.LoadWeightsRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def load_weights(
    *,
    body: models.LoadWeightsRequest,
) -> Call[models.UntypedAPIFuture]:
    """Load saved weights into a model; the result is LoadWeightsResponse."""
    return Call(
        OPERATION,
        body=body,
    )
