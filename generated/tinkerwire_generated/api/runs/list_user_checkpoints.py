# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UnsetType

from ... import models

OPERATION = Operation(
    name="list_user_checkpoints",
    tag="runs",
    method="GET",
    path="/api/v1/checkpoints",
    get_results=lambda: {
        200: models.CheckpointsListResponse,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def list_user_checkpoints(
    *,
    limit: int | UnsetType = 100,
    offset: int | UnsetType = 0,
) -> Call[models.CheckpointsListResponse]:
    """List the checkpoints of all training runs of the caller; the response is one page."""
    return Call(
        OPERATION,
        query={
            "limit": limit,
            "offset": offset,
        },
    )
