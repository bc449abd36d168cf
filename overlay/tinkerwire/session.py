"""A session with a server: made at first need, kept alive by heartbeats, ended by close."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from tinkerwire_generated.api.session import create_session, session_heartbeat
from tinkerwire_generated.models import CreateSessionRequest, SessionHeartbeatRequest

from .backpressure import Traffic
from .connection import Connection
from .retry import RetryConfig

log = logging.getLogger("tinkerwire")

HEARTBEAT_S = 10.0
HEARTBEAT_TIMEOUT_S = 10.0
SILENCE_S = 120.0
"""A heartbeat that fails for this long is worth a warning."""
ONCE = RetryConfig(enable_retry_logic=False)


class Session:
    """One session; its counters number the models and samplers made in it. Used on the loop thread."""

    def __init__(self, connection: Connection, user_metadata: Mapping[str, Any] | None, project_id: str | None) -> None:
        self.connection = connection
        self._user_metadata = dict(user_metadata or {})
        self._project_id = project_id
        self._id: asyncio.Task[str] | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._models = 0
        self._samplers = 0

    async def id(self) -> str:
        """The session's id; the first to ask creates the session, and a failed creation is tried again."""
        if self._id is None or (self._id.done() and (self._id.cancelled() or self._id.exception())):
            self._id = asyncio.create_task(self._create())
        return await asyncio.shield(self._id)

    def next_model_seq_id(self) -> int:
        """The number of the next model, from 0."""
        self._models += 1
        return self._models - 1

    def next_sampling_session_seq_id(self) -> int:
        """The number of the next sampler, from 0."""
        self._samplers += 1
        return self._samplers - 1

    async def close(self) -> None:
        """Stop the heartbeat; the server lets the session run out."""
        tasks = [task for task in (self._heartbeat, self._id) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _create(self) -> str:
        body = CreateSessionRequest(
            tags=_tags(),
            user_metadata=self._user_metadata,
            sdk_version=self.connection.wire_version,
            project_id=self._project_id,
        )
        created = await self.connection.call(create_session(body=body), Traffic.SESSION)
        for level, message in (
            (logging.INFO, created.info_message),
            (logging.WARNING, created.warning_message),
            (logging.ERROR, created.error_message),
        ):
            if message:
                log.log(level, "%s", message)
        self._heartbeat = asyncio.create_task(self._beat(created.session_id))
        return created.session_id

    async def _beat(self, session_id: str) -> None:
        last_heard = time.monotonic()
        call = session_heartbeat(body=SessionHeartbeatRequest(session_id=session_id))
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            try:
                await self.connection.call(call, Traffic.SESSION, retry=ONCE, timeout_s=HEARTBEAT_TIMEOUT_S)
                last_heard = time.monotonic()
            except Exception as fault:  # nothing may end the heartbeat but the session's end
                silence = time.monotonic() - last_heard
                if getattr(fault, "status_code", None) == 410:
                    log.warning("session %s has expired on the server; its heartbeat ends", session_id)
                    return
                if silence > SILENCE_S:
                    log.warning("session %s: no heartbeat got through for %.0f s: %s", session_id, silence, fault)


def _tags() -> list[str]:
    return [tag for tag in os.environ.get("TINKER_TAGS", "").split(",") if tag]
