# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="get_external_weights_urls",
    tag="runs",
    method="GET",
    path="/api/v1/training_runs/{training_run_id}/checkpoints/{checkpoint_id}/external_weights_urls",
    multi_segment=("checkpoint_id",),
    get_results=lambda: {
        200: models.ExternalWeightsUrlsResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
    },
)


def get_external_weights_urls(
    training_run_id: str,
    checkpoint_id: str,
) -> Call[models.ExternalWeightsUrlsResponse]:
    """Get the URLs of the files of a checkpoint that was saved for download."""
    return Call(
        OPERATION,
        path={
            "training_run_id": training_run_id,
            "checkpoint_id": checkpoint_id,
        },
    )
