# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="save_weights_for_sampler",
    tag="weights",
    method="POST",
    path="/api/v1/save_weights_for_sampler",
    get_request=lambda: models.SaveWeightsForSamplerRequest,
    get_results=lambda: {
        200: models.UntypedAPIFuture,
        401: models.ErrorBody,
        402: models.ErrorBody,
        404: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def save_weights_for_sampler(
    *,
    body: models.SaveWeightsForSamplerRequest,
) -> Call[models.UntypedAPIFuture]:
    """Save weights to sample from; the result is SaveWeightsForSamplerResponseInternal."""
    return Call(
        OPERATION,
        body=body,
    )
