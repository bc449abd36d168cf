# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation
from tinkerwire_base.unset import UNSET, UnsetType

from ...models import AccessScope, ErrorBody, TrainingRun, ValidationErrorBody

OPERATION = Operation(
    name="get_training_run",
    tag="runs",
    method="GET",
    path="/api/v1/training_runs/{training_run_id}",
    results={
        200: TrainingRun,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def get_training_run(
    training_run_id: str,
    *,
    access_scope: AccessScope | UnsetType = UNSET,
) -> Call[TrainingRun]:
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
