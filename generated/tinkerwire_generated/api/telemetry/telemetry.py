# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, TelemetryResponse, TelemetrySendRequest, ValidationErrorBody

OPERATION = Operation(
    name="telemetry",
    tag="telemetry",
    method="POST",
    path="/api/v1/telemetry",
    request=TelemetrySendRequest,
    results={
        200: TelemetryResponse,
        401: ErrorBody,
        422: ValidationErrorBody,
    },
)


def telemetry(
    *,
    body: TelemetrySendRequest,
) -> Call[TelemetryResponse]:
    """Report events of a client, at most 100 in one request."""
    return Call(
        OPERATION,
        body=body,
    )
