# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="asample",
    tag="sampling",
    method="POST",
    path="/api/v1/asample",
    get_request=lambda: models.SampleRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
        429: models.ErrorBody,
    },
)


def asample(
    *,
    body: models.SampleRequest,
) -> Call[models.UntypedAPIFuture]:
    """Sample from a model, or score a prompt; the result is SampleResponse."""
    return Call(
        OPERATION,
        body=body,
    )
