# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
from __future__ import annotations

from tinkerwire_base.call import Call, Operation

from ... import models

OPERATION = Operation(
    name="export_session_trace",
    tag="session",
    method="GET",
    path="/api/v1/sessions/{session_id}/trace_export",
    get_results=lambda: {
        200: models.SessionTraceExportPollResponse,
        401: models.ErrorBody,
        404: models.ErrorBody,
    },
)


def export_session_trace(
    session_id: str,
) -> Call[models.SessionTraceExportPollResponse]:
    """Get the trace of a session; clients poll every 5 s until the trace is ready."""
    return Call(
        OPERATION,
        path={
            "session_id": session_id,
        },
    )
