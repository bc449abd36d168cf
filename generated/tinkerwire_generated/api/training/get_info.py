# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, GetInfoRequest, GetInfoResponse, ValidationErrorBody

OPERATION = Operation(
    name="get_info",
    tag="training",
    method="POST",
    path="/api/v1/get_info",
    request=GetInfoRequest,
    results={
        200: GetInfoResponse,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def get_info(
    *,
    body: GetInfoRequest,
) -> Call[GetInfoResponse]:
    """Describe a model; the response is immediate."""
    return Call(
        OPERATION,
        body=body,
    )
