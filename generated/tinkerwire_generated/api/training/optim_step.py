# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="optim_step",
    tag="training",
    method="POST",
    path="/api/v1/optim_step",
    get_request=lambda: models.OptimStepRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def optim_step(
    *,
    body: models.OptimStepRequest,
) -> Call[models.UntypedAPIFuture]:
    """Update the weights with the accumulated gradients and clear them; the result is OptimStepResponse."""
    return Call(
        OPERATION,
        body=body,
    )
