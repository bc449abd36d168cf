# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="weights_info",
    tag="weights",
    method="POST",
    path="/api/v1/weights_info",
    get_request=lambda: models.WeightsInfoRequest,
    get_results=lambda: {
        200: models.WeightsInfoResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def weights_info(
    *,
    body: models.WeightsInfoRequest,
) -> Call[models.WeightsInfoResponse]:
    """Describe the base model and adapter of saved weights."""
    return Call(
        OPERATION,
        body=body,
    )
