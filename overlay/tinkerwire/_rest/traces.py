"""Export of the trace of a session."""

from __future__ import annotations

import asyncio

from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.api.session import export_session_trace

from .._connection.connection import Connection
from .._futures.logger import log
from .._transport.backpressure import Traffic

ASK_EVERY_S = 5.0


async def export_trace(connection: Connection, session_id: str) -> str:
    """Poll until a trace is exported, and return its signed URL; raise TinkerError if the export fails."""
    call = export_session_trace(session_id)
    is_first = True
    while True:
        export = await connection.call(call, Traffic.REST)
        if export.status == "ready" and export.url:
            return export.url
        if export.status in ("ready", "failed"):
            why = export.error or "the server gave no reason"
            raise TinkerError(f"session {session_id}: its trace could not be exported: {why}")
        if is_first:
            log.warning("session %s: the server prepares its trace; polling every %.0f s", session_id, ASK_EVERY_S)
            is_first = False
        await asyncio.sleep(ASK_EVERY_S)
