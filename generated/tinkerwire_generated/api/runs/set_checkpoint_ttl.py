# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="set_checkpoint_ttl",
    tag="runs",
    method="PUT",
    path="/api/v1/training_runs/{training_run_id}/checkpoints/{checkpoint_id}/ttl",
    multi_segment=("checkpoint_id",),
    get_request=lambda: models.SetCheckpointTtlRequest,
    get_results=lambda: {
        200: None,
        204: None,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def set_checkpoint_ttl(
    training_run_id: str,
    checkpoint_id: str,
    *,
    body: models.SetCheckpointTtlRequest,
) -> Call[None]:
    """Set or remove the time after which a checkpoint is deleted."""
    return Call(
        OPERATION,
        path={
            "training_run_id": training_run_id,
            "checkpoint_id": checkpoint_id,
        },
        body=body,
    )
