"""Heartbeats: they keep a session alive, and show whether the server still has it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import attrs

from tinkerwire_base.errors import SessionExpiredError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.session import session_heartbeat

from .._connection.connection import Connection
from .._connection.retry import SINGLE_ATTEMPT
from .._connection.session_loss import may_refuse_session, names_session
from .._futures.logger import log
from .._futures.operation_record import create_detached_task
from .._futures.timeout import wait_for
from .._transport.backpressure import Traffic

HEARTBEAT_S = 10.0
HEARTBEAT_TIMEOUT_S = 10.0
PROBE_REUSE_S = 1.0
"""Time for which the result of a heartbeat serves further probes."""
PROBE_TIMEOUT_S = 3.0
"""Time limit of a probe: the operation that failed already has an error to raise."""
SILENCE_S = 120.0
"""Time after which failing heartbeats are logged."""
METHOD_NOT_ALLOWED = 405


class Heartbeat:
    """Sends the heartbeats of one session. Used on the loop thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._state = connection.session_state
        self._session_id = ""
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._was_accepted = False
        """True once the server has accepted a heartbeat."""
        self._rejection: TinkerError | None = None
        """The error response to the last heartbeat, if it may mean that the session is lost."""
        self._is_expired = False
        """True once the server no longer has this session; the connection may already use another one."""
        self._last_success_at, self._last_attempt_at = 0.0, float("-inf")  # monotonic

    def start(self, session_id: str) -> None:
        """Start to send heartbeats for a session."""
        self._session_id = session_id
        self._last_success_at = time.monotonic()
        self._state.set_probe(self._probe)
        self._task = create_detached_task(self._send_regularly())

    async def stop(self) -> None:
        """Stop sending heartbeats, if they were started."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_regularly(self) -> None:
        while not self._is_expired:
            await asyncio.sleep(HEARTBEAT_S)
            async with self._lock:
                await self._send()

    async def _probe(self) -> bool:
        """Return whether the server no longer has the session, by a heartbeat of at most one second ago."""
        with suppress(asyncio.TimeoutError):
            await wait_for(self._check_session(), PROBE_TIMEOUT_S)
        return self._is_expired

    async def _check_session(self) -> None:
        async with self._lock:
            if time.monotonic() - self._last_attempt_at > PROBE_REUSE_S:
                await self._send()
            rejection, self._rejection = self._rejection, None
            if rejection is None or self._is_expired:
                return
            # No heartbeat has succeeded so far: the session is lost, or the server does not support heartbeats.
            if names_session(rejection, self._session_id) or await self._supports_heartbeats():
                self._expire()

    async def _supports_heartbeats(self) -> bool:
        """Return whether the server has the endpoint: it then rejects the method GET."""
        connection = self._connection
        call = session_heartbeat(body=models.SessionHeartbeatRequest(session_id=""))
        request = attrs.evolve(connection.codec.encode(call, await connection.dialect()), method="GET", content=None)
        try:
            response = await connection.exchange(request, Traffic.SESSION, PROBE_TIMEOUT_S)
        except TinkerError:
            return False
        return response.status == METHOD_NOT_ALLOWED

    async def _send(self) -> None:
        if self._is_expired:
            return
        call = session_heartbeat(body=models.SessionHeartbeatRequest(session_id=self._session_id))
        self._rejection = None
        try:
            await self._connection.call(call, Traffic.SESSION, retry=SINGLE_ATTEMPT, timeout_s=HEARTBEAT_TIMEOUT_S)
            self._last_success_at, self._was_accepted = time.monotonic(), True
        except Exception as error:  # heartbeats end with the session only
            silence = time.monotonic() - self._last_success_at
            is_rejected = may_refuse_session(error)
            # A server without heartbeats responds with 404, too, but to the first one already.
            if isinstance(error, SessionExpiredError) or (self._was_accepted and is_rejected):
                self._expire()
                return
            if is_rejected and isinstance(error, TinkerError):
                self._rejection = error
            if silence > SILENCE_S:
                log.warning("session %s: no heartbeat has succeeded for %.0f s: %s", self._session_id, silence, error)
        finally:
            self._last_attempt_at = time.monotonic()

    def _expire(self) -> None:
        self._is_expired = True
        self._state.mark_expired(self._session_id)
        log.warning("session %s has expired on the server; the client sends no more heartbeats", self._session_id)
