"""The sessions of a run: their creation, their heartbeats, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from tinkerwire_generated import models
from tinkerwire_generated.api.session import create_session, finish_session, session_heartbeat

from ..._futures.logger import log
from ..._futures.timeout import wait_for
from ..client.futures import is_final_rejection
from ..client.wire_client import WireClient
from ..exchange import Exchange
from ..violation import Violation

HEARTBEAT_INTERVAL_S = 10.0
FINISHING_TIMEOUT_S = 15.0
"""Time for all sessions of a run together."""
MAX_FINISHING = 8


class RunSessions:
    """RunSessions of a run; all of them are finished at its end.

    Args:
        client: sends the requests.
    """

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._ids: list[str] = []
        self._kept_alive: list[str] = []
        self._heartbeats: asyncio.Task[None] | None = None

    async def create(self) -> str:
        """Create a session and return its id."""
        body = models.CreateSessionRequest(tags=["conformance"], user_metadata={}, sdk_version=self._client.wire)
        created, _ = await self._client.call(create_session(body=body))
        self.adopt(created.session_id)
        return created.session_id

    def adopt(self, session_id: str) -> None:
        """Note a session that was created elsewhere."""
        self._ids.append(session_id)

    def keep_alive(self, session_id: str) -> None:
        """Send heartbeats of a session until the end of the run, as clients do."""
        self._kept_alive.append(session_id)
        if self._heartbeats is None:
            self._heartbeats = asyncio.create_task(self._send_heartbeats())

    async def has_ended(self, session_id: str) -> bool:
        """Check whether the server has ended a session: it rejects its heartbeat, and accepts that of a new session."""
        if not is_final_rejection(await self._send_heartbeat(session_id)):
            return False
        try:
            new_id = await self.create()
        except Violation:
            return False
        return (await self._send_heartbeat(new_id)).is_success

    def let_go(self, session_id: str) -> None:
        """Send no more heartbeats of a session."""
        self._kept_alive.remove(session_id)

    async def finish(self) -> None:
        """Stop the heartbeats and finish all sessions; see :func:`finish_sessions`."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
        await finish_sessions(self._client, self._ids)

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)
            for session_id in list(self._kept_alive):
                with suppress(Exception):
                    await self._send_heartbeat(session_id)

    async def _send_heartbeat(self, session_id: str) -> Exchange:
        body = models.SessionHeartbeatRequest(session_id=session_id)
        return await self._client.send_call(session_heartbeat(body=body))


async def finish_sessions(client: WireClient, session_ids: Iterable[str]) -> None:
    """Finish sessions, within a time limit; failures are ignored, and some servers cannot finish sessions."""
    if not client.contract.has_operation("finish_session"):
        return
    limit = asyncio.Semaphore(MAX_FINISHING)
    body = models.FinishSessionRequest(reason=models.SessionFinishReason(type="success"), detail=None)

    async def finish(session_id: str) -> None:
        async with limit:
            with suppress(Exception):
                await client.send_call(finish_session(session_id, body=body))

    try:
        await wait_for(asyncio.gather(*map(finish, session_ids)), FINISHING_TIMEOUT_S)
    except asyncio.TimeoutError:
        log.warning("the server did not finish the sessions of the run within %g s", FINISHING_TIMEOUT_S)
