# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ... import models

OPERATION = Operation(
    name="list_training_runs",
    tag="runs",
    method="GET",
    path="/api/v1/training_runs",
    get_results=lambda: {
        200: models.TrainingRunsResponse,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def list_training_runs(
    *,
    limit: int | UnsetType = 20,
    offset: int | UnsetType = 0,
    access_scope: models.AccessScope | UnsetType = UNSET,
    project_id: str | UnsetType = UNSET,
) -> Call[models.TrainingRunsResponse]:
    """List training runs; the response is one page."""
    return Call(
        OPERATION,
        query={
            "limit": limit,
            "offset": offset,
            "access_scope": access_scope,
            "project_id": project_id,
        },
    )
