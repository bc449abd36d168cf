# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import CreateSamplingSessionRequest, CreateSamplingSessionResponse, ErrorBody, ValidationErrorBody

OPERATION = Operation(
    name="create_sampling_session",
    tag="sampling",
    method="POST",
    path="/api/v1/create_sampling_session",
    request=CreateSamplingSessionRequest,
    results={
        200: CreateSamplingSessionResponse,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def create_sampling_session(
    *,
    body: CreateSamplingSessionRequest,
) -> Call[CreateSamplingSessionResponse]:
    """Open a sampling session on a base model or on saved weights; the response is immediate."""
    return Call(
        OPERATION,
        body=body,
    )
