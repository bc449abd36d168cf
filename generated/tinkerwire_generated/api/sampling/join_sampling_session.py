# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="join_sampling_session",
    tag="sampling",
    method="POST",
    path="/api/v1/join_sampling_session",
    get_request=lambda: models.JoinSamplingSessionRequest,
    get_results=lambda: {
        200: models.JoinSamplingSessionResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def join_sampling_session(
    *,
    body: models.JoinSamplingSessionRequest,
) -> Call[models.JoinSamplingSessionResponse]:
    """Get the number of a copy of a sampling client; only if client/config requires it."""
    return Call(
        OPERATION,
        body=body,
    )
