# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="retrieve_futures",
    tag="futures",
    method="POST",
    path="/api/v1/retrieve_futures",
    get_request=lambda: models.FuturesRetrieveRequest,
    get_results=lambda: {
        200: models.FuturesRetrieveResponse,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def retrieve_futures(
    *,
    body: models.FuturesRetrieveRequest,
) -> Call[models.FuturesRetrieveResponse]:
    """Wait for any of the samples of a sampling session; only if client/config requires it."""
    return Call(
        OPERATION,
        body=body,
    )
