# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ... import models

OPERATION = Operation(
    name="get_checkpoint_storage_usage",
    tag="admin",
    method="GET",
    path="/api/v1/billing/usage/checkpoints/current",
    get_results=lambda: {
        200: models.CurrentCheckpointStorageUsageResponse,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def get_checkpoint_storage_usage(
    *,
    project_id: str | UnsetType = UNSET,
) -> Call[models.CurrentCheckpointStorageUsageResponse]:
    """Read the current storage of checkpoints."""
    return Call(
        OPERATION,
        query={
            "project_id": project_id,
        },
    )
