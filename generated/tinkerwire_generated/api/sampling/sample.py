# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="sample",
    tag="sampling",
    method="POST",
    path="/api/v1/sample",
    get_request=lambda: models.SamplingSampleParams,
    get_results=lambda: {
        200: models.SampleResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def sample(
    *,
    body: models.SamplingSampleParams,
) -> Call[models.SampleResponse]:
    """Sample from a model; the response comes when sampling is complete."""
    return Call(
        OPERATION,
        body=body,
    )
