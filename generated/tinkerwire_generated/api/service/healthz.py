# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="healthz",
    tag="service",
    method="GET",
    path="/api/v1/healthz",
    get_results=lambda: {
        200: models.HealthResponse,
    },
)


def healthz() -> Call[models.HealthResponse]:
    """Check that the server is up."""
    return Call(
        OPERATION,
    )
