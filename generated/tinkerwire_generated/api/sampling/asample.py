# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SampleRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="asample",
    tag="sampling",
    method="POST",
    path="/api/v1/asample",
    request=SampleRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
        429: ErrorBody,
    },
)


def asample(
    *,
    body: SampleRequest,
) -> Call[UntypedAPIFuture]:
    """Sample from a model, or score a prompt; the result is SampleResponse."""
    return Call(
        OPERATION,
        body=body,
    )
