# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CheckpointsListResponse, ErrorBody

OPERATION = Operation(
    name="list_model_checkpoints",
    tag="runs",
    method="GET",
    path="/api/v1/models/{model_id}/checkpoints",
    results={
        200: CheckpointsListResponse,
        401: ErrorBody,
        404: ErrorBody,
    },
)


def list_model_checkpoints(
    model_id: str,
) -> Call[CheckpointsListResponse]:
    """List the checkpoints of a model; list_checkpoints replaced it."""
    return Call(
        OPERATION,
        path={
            "model_id": model_id,
        },
    )
