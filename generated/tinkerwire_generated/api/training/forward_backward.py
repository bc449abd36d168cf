# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="forward_backward",
    tag="training",
    method="POST",
    path="/api/v1/forward_backward",
    get_request=lambda: models.ForwardBackwardRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def forward_backward(
    *,
    body: models.ForwardBackwardRequest,
) -> Call[models.UntypedAPIFuture]:
    """Compute a loss and add its gradients to those of the model; the result is ForwardBackwardOutput."""
    return Call(
        OPERATION,
        body=body,
    )
