# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import (
    CompleteMetadataResponse,
    CreateCustomLossResponse,
    CreateModelResponse,
    ErrorBody,
    ForwardBackwardOutput,
    FutureRetrieveRequest,
    LoadWeightsResponse,
    OptimStepResponse,
    RequestFailedResponse,
    SampleResponse,
    SaveWeightsExternalResponse,
    SaveWeightsExternalResponseInternal,
    SaveWeightsForSamplerResponse,
    SaveWeightsForSamplerResponseInternal,
    SaveWeightsResponse,
    TryAgainResponse,
    UnloadModelResponse,
    ValidationErrorBody,
)

OPERATION = Operation(
    name="retrieve_future",
    tag="futures",
    method="POST",
    path="/api/v1/retrieve_future",
    request=FutureRetrieveRequest,
    results={
        200: CompleteMetadataResponse
        | CreateCustomLossResponse
        | CreateModelResponse
        | ForwardBackwardOutput
        | LoadWeightsResponse
        | OptimStepResponse
        | RequestFailedResponse
        | SampleResponse
        | SaveWeightsExternalResponse
        | SaveWeightsExternalResponseInternal
        | SaveWeightsForSamplerResponse
        | SaveWeightsForSamplerResponseInternal
        | SaveWeightsResponse
        | TryAgainResponse
        | UnloadModelResponse,
        400: ErrorBody,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        408: TryAgainResponse,
        410: ErrorBody,
        422: ValidationErrorBody,
        429: ErrorBody,
    },
)


def retrieve_future(
    *,
    body: FutureRetrieveRequest,
) -> Call[
    CompleteMetadataResponse
    | CreateCustomLossResponse
    | CreateModelResponse
    | ForwardBackwardOutput
    | LoadWeightsResponse
    | OptimStepResponse
    | RequestFailedResponse
    | SampleResponse
    | SaveWeightsExternalResponse
    | SaveWeightsExternalResponseInternal
    | SaveWeightsForSamplerResponse
    | SaveWeightsForSamplerResponseInternal
    | SaveWeightsResponse
    | TryAgainResponse
    | UnloadModelResponse
]:
    """Wait for a result; the server holds the request until the result is ready or some time has passed."""
    return Call(
        OPERATION,
        body=body,
    )
