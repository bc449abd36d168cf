# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="publish_checkpoint",
    tag="runs",
    method="POST",
    path="/api/v1/training_runs/{training_run_id}/checkpoints/{checkpoint_id}/publish",
    multi_segment=("checkpoint_id",),
    get_results=lambda: {
        200: None,
        204: None,
        401: models.ErrorBody,
        404: models.ErrorBody,
    },
)


def publish_checkpoint(
    training_run_id: str,
    checkpoint_id: str,
) -> Call[None]:
    """Publish a checkpoint, so that everybody can load it."""
    return Call(
        OPERATION,
        path={
            "training_run_id": training_run_id,
            "checkpoint_id": checkpoint_id,
        },
    )
