# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SampleResponse, SamplingSampleParams, ValidationErrorBody

OPERATION = Operation(
    name="sample",
    tag="sampling",
    method="POST",
    path="/api/v1/sample",
    request=SamplingSampleParams,
    results={
        200: SampleResponse,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def sample(
    *,
    body: SamplingSampleParams,
) -> Call[SampleResponse]:
    """Sample from a model; the response comes when sampling is complete."""
    return Call(
        OPERATION,
        body=body,
    )
