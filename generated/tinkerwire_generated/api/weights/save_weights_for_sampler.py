# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SaveWeightsForSamplerRequest, UntypedAPIFuture, ValidationErrorBody

OPERATION = Operation(
    name="save_weights_for_sampler",
    tag="weights",
    method="POST",
    path="/api/v1/save_weights_for_sampler",
    request=SaveWeightsForSamplerRequest,
    results={
        200: UntypedAPIFuture,
        401: ErrorBody,
        402: ErrorBody,
        404: ErrorBody,
        422: ValidationErrorBody,
    },
)


def save_weights_for_sampler(
    *,
    body: SaveWeightsForSamplerRequest,
) -> Call[UntypedAPIFuture]:
    """Save weights to sample from; the result is SaveWeightsForSamplerResponseInternal."""
    return Call(
        OPERATION,
        body=body,
    )
