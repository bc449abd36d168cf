# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CancelFutureRequest, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="cancel_future",
    tag="futures",
    method="POST",
    path="/api/v1/cancel_future",
    request=CancelFutureRequest,
    results={
        200: None,
        204: None,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def cancel_future(
    *,
    body: CancelFutureRequest,
) -> Call[None]:
    """Cancel a sample; only if client/dynamic_config enables it."""
    return Call(
        OPERATION,
        body=body,
    )
