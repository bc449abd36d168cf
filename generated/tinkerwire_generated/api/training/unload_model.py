# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="unload_model",
    tag="training",
    method="POST",
    path="/api/v1/unload_model",
    get_request=lambda: models.UnloadModelRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def unload_model(
    *,
    body: models.UnloadModelRequest,
) -> Call[models.UntypedAPIFuture]:
    """Unload a model; the result is UnloadModelResponse."""
    return Call(
        OPERATION,
        body=body,
    )
