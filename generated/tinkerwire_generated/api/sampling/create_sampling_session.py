# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="create_sampling_session",
    tag="sampling",
    method="POST",
    path="/api/v1/create_sampling_session",
    get_request=lambda: models.CreateSamplingSessionRequest,
    get_results=lambda: {
        200: models.CreateSamplingSessionResponse,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def create_sampling_session(
    *,
    body: models.CreateSamplingSessionRequest,
) -> Call[models.CreateSamplingSessionResponse]:
    """Open a sampling session on a base model or on saved weights; the response is immediate."""
    return Call(
        OPERATION,
        body=body,
    )
