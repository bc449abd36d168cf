# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="get_checkpoint_archive_url",
    tag="runs",
    method="GET",
    path="/api/v1/training_runs/{training_run_id}/checkpoints/{checkpoint_id}/archive",
    multi_segment=("checkpoint_id",),
    get_results=lambda: {
        200: models.CheckpointArchiveUrlResponse,
        302: None,
        401: models.ErrorBody,
        404: models.ErrorBody,
    },
)


def get_checkpoint_archive_url(
    training_run_id: str,
    checkpoint_id: str,
) -> Call[models.CheckpointArchiveUrlResponse | None]:
    """Get the URL of a checkpoint as one archive, as a redirect that clients do not follow."""
    return Call(
        OPERATION,
        path={
            "training_run_id": training_run_id,
            "checkpoint_id": checkpoint_id,
        },
    )
