# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, ValidationErrorBody, WeightsInfoRequest, WeightsInfoResponse

OPERATION = Operation(
    name="weights_info",
    tag="weights",
    method="POST",
    path="/api/v1/weights_info",
    request=WeightsInfoRequest,
    results={
        200: WeightsInfoResponse,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def weights_info(
    *,
    body: WeightsInfoRequest,
) -> Call[WeightsInfoResponse]:
    """Describe the base model and adapter of saved weights."""
    return Call(
        OPERATION,
        body=body,
    )
