# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="get_info",
    tag="training",
    method="POST",
    path="/api/v1/get_info",
    get_request=lambda: models.GetInfoRequest,
    get_results=lambda: {
        200: models.GetInfoResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def get_info(
    *,
    body: models.GetInfoRequest,
) -> Call[models.GetInfoResponse]:
    """Describe a model; the response is immediate."""
    return Call(
        OPERATION,
        body=body,
    )
