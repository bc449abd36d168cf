# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, JoinSamplingSessionRequest, JoinSamplingSessionResponse, ValidationErrorBody

OPERATION = Operation(
    name="join_sampling_session",
    tag="sampling",
    method="POST",
    path="/api/v1/join_sampling_session",
    request=JoinSamplingSessionRequest,
    results={
        200: JoinSamplingSessionResponse,
        401: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def join_sampling_session(
    *,
    body: JoinSamplingSessionRequest,
) -> Call[JoinSamplingSessionResponse]:
    """Get the number of a copy of a sampling client; only if client/config requires it."""
    return Call(
        OPERATION,
        body=body,
    )
