# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="telemetry",
    tag="telemetry",
    method="POST",
    path="/api/v1/telemetry",
    get_request=lambda: models.TelemetrySendRequest,
    get_results=lambda: {
        200: models.TelemetryResponse,
        401: models.ErrorBody,
        422: models.ValidationErrorBody,
    },
)


def telemetry(
    *,
    body: models.TelemetrySendRequest,
) -> Call[models.TelemetryResponse]:
    """Report events of a client, at most 100 in one request."""
    return Call(
        OPERATION,
        body=body,
    )
