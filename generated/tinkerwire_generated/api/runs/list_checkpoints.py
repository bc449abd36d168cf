# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CheckpointsListResponse, ErrorBody

OPERATION = Operation(
    name="list_checkpoints",
    tag="runs",
    method="GET",
    path="/api/v1/training_runs/{training_run_id}/checkpoints",
    results={
        200: CheckpointsListResponse,
        401: ErrorBody,
        404: ErrorBody,
    },
)


def list_checkpoints(
    training_run_id: str,
) -> Call[CheckpointsListResponse]:
    """List the checkpoints of a training run."""
    return Call(
        OPERATION,
        path={
            "training_run_id": training_run_id,
        },
    )
