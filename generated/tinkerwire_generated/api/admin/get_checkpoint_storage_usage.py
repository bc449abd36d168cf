# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ...models import CurrentCheckpointStorageUsageResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="get_checkpoint_storage_usage",
    tag="admin",
    method="GET",
    path="/api/v1/billing/usage/checkpoints/current",
    results={
        200: CurrentCheckpointStorageUsageResponse,
        401: ErrorBody,
        422: ValidationErrorBody,
    },
)


def get_checkpoint_storage_usage(
    *,
    project_id: str | UnsetType = UNSET,
) -> Call[CurrentCheckpointStorageUsageResponse]:
    """Read the current storage of checkpoints."""
    return Call(
        OPERATION,
        query={
            "project_id": project_id,
        },
    )
