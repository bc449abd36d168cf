# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="get_sampler",
    tag="sampling",
    method="GET",
    path="/api/v1/samplers/{sampler_id}",
    get_results=lambda: {
        200: models.GetSamplerResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
    },
)


def get_sampler(
    sampler_id: str,
) -> Call[models.GetSamplerResponse]:
    """Describe the base model and weights of a sampler."""
    return Call(
        OPERATION,
        path={
            "sampler_id": sampler_id,
        },
    )
