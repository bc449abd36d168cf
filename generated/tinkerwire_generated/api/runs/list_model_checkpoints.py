# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="list_model_checkpoints",
    tag="runs",
    method="GET",
    path="/api/v1/models/{model_id}/checkpoints",
    get_results=lambda: {
        200: models.CheckpointsListResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
    },
)


def list_model_checkpoints(
    model_id: str,
) -> Call[models.CheckpointsListResponse]:
    """List the checkpoints of a model."""
    return Call(
        OPERATION,
        path={
            "model_id": model_id,
        },
    )
