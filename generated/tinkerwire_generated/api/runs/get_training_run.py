# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ... import models

OPERATION = Operation(
    name="get_training_run",
    tag="runs",
    method="GET",
    path="/api/v1/training_runs/{training_run_id}",
    get_results=lambda: {
        200: models.TrainingRun,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def get_training_run(
    training_run_id: str,
    *,
    access_scope: models.AccessScope | UnsetType = UNSET,
) -> Call[models.TrainingRun]:
    """Describe a training run."""
    return Call(
        OPERATION,
        path={
            "training_run_id": training_run_id,
        },
        query={
            "access_scope": access_scope,
        },
    )
