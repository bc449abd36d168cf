# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SetCheckpointTtlRequest, ValidationErrorBody

OPERATION = Operation(
    name="set_checkpoint_ttl",
    tag="runs",
    method="PUT",
    path="/api/v1/training_runs/{training_run_id}/checkpoints/{checkpoint_id}/ttl",
    multi_segment=("checkpoint_id",),
    request=SetCheckpointTtlRequest,
    results={
        200: None,
        204: None,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def set_checkpoint_ttl(
    training_run_id: str,
    checkpoint_id: str,
    *,
    body: SetCheckpointTtlRequest,
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
