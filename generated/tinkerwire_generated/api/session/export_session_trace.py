# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ...models import ErrorBody, SessionTraceExportPollResponse

OPERATION = Operation(
    name="export_session_trace",
    tag="session",
    method="GET",
    path="/api/v1/sessions/{session_id}/trace_export",
    results={
        200: SessionTraceExportPollResponse,
        401: ErrorBody,
        404: ErrorBody,
    },
)


def export_session_trace(
    session_id: str,
) -> Call[SessionTraceExportPollResponse]:
    """Get the trace of a session; clients poll every 5 s until the trace is ready."""
    return Call(
        OPERATION,
        path={
            "session_id": session_id,
        },
    )
