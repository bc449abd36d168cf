# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="get_server_capabilities",
    tag="service",
    method="GET",
    path="/api/v1/get_server_capabilities",
    get_results=lambda: {
        200: models.GetServerCapabilitiesResponse,
        401: models.ErrorBody,
    },
)


def get_server_capabilities() -> Call[models.GetServerCapabilitiesResponse]:
    """List the base models that can be trained or sampled."""
    return Call(
        OPERATION,
    )
