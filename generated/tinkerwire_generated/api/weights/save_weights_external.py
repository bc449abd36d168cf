# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="save_weights_external",
    tag="weights",
    method="POST",
    path="/api/v1/save_weights_external",
    get_request=lambda: models.SaveWeightsExternalRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def save_weights_external(
    *,
    body: models.SaveWeightsExternalRequest,
) -> Call[models.UntypedAPIFuture]:
    """Save weights to download them; the result is SaveWeightsExternalResponseInternal."""
    return Call(
        OPERATION,
        body=body,
    )
