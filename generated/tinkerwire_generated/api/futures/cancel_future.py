# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="cancel_future",
    tag="futures",
    method="POST",
    path="/api/v1/cancel_future",
    get_request=lambda: models.CancelFutureRequest,
    get_results=lambda: {
        200: None,
        204: None,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def cancel_future(
    *,
    body: models.CancelFutureRequest,
) -> Call[None]:
    """Cancel a sample; only if client/dynamic_config enables it."""
    return Call(
        OPERATION,
        body=body,
    )
