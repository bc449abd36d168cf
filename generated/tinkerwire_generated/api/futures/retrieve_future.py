# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="retrieve_future",
    tag="futures",
    method="POST",
    path="/api/v1/retrieve_future",
    get_request=lambda: models.FutureRetrieveRequest,
    get_results=lambda: {
        200: models.CompleteMetadataResponse
        | models.CreateCustomLossResponse
        | models.CreateModelResponse
        | models.ForwardBackwardOutput
        | models.LoadWeightsResponse
        | models.OptimStepResponse
        | models.RequestFailedResponse
        | models.SampleResponse
        | models.SaveWeightsExternalResponse
        | models.SaveWeightsExternalResponseInternal
        | models.SaveWeightsForSamplerResponse
        | models.SaveWeightsForSamplerResponseInternal
        | models.SaveWeightsResponse
        | models.TryAgainResponse
        | models.UnloadModelResponse,
        400: models.ErrorBody,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        408: models.TryAgainResponse,
        410: models.ErrorBody,
        422: models.ValidationErrorBody,
        429: models.ErrorBody,
    },
)


def retrieve_future(
    *,
    body: models.FutureRetrieveRequest,
) -> Call[
    models.CompleteMetadataResponse
    | models.CreateCustomLossResponse
    | models.CreateModelResponse
    | models.ForwardBackwardOutput
    | models.LoadWeightsResponse
    | models.OptimStepResponse
    | models.RequestFailedResponse
    | models.SampleResponse
    | models.SaveWeightsExternalResponse
    | models.SaveWeightsExternalResponseInternal
    | models.SaveWeightsForSamplerResponse
    | models.SaveWeightsForSamplerResponseInternal
    | models.SaveWeightsResponse
    | models.TryAgainResponse
    | models.UnloadModelResponse
]:
    """Wait for a result; the server holds the request until the result is ready or some time has passed."""
    return Call(
        OPERATION,
        body=body,
    )
