# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, FuturesRetrieveRequest, FuturesRetrieveResponse, ValidationErrorBody

OPERATION = Operation(
    name="retrieve_futures",
    tag="futures",
    method="POST",
    path="/api/v1/retrieve_futures",
    request=FuturesRetrieveRequest,
    results={
        200: FuturesRetrieveResponse,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def retrieve_futures(
    *,
    body: FuturesRetrieveRequest,
) -> Call[FuturesRetrieveResponse]:
    """Wait for any of the samples of a sampling session; only if client/config requires it."""
    return Call(
        OPERATION,
        body=body,
    )
