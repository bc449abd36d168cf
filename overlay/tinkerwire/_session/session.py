"""A session with a server: made at first need, kept alive by heartbeats, ended by close."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

import attrs

from tinkerwire_base.errors import APIStatusError, SessionExpiredError, TinkerError
from tinkerwire_generated.api.session import create_session, finish_session, session_heartbeat
from tinkerwire_generated.models import (
    CreateSessionRequest,
    FinishSessionRequest,
    SessionFinishReason,
    SessionHeartbeatRequest,
)

from .._connection.connection import Connection
from .._connection.dialect_resolver import ENDPOINT_MISSING
from .._connection.retry import RetryConfig
from .._connection.session_loss import may_refuse_session, names_session
from .._futures.logger import log
from .._futures.operation_record import create_detached_task
from .._futures.single_flight import SingleFlight
from .._futures.timeout import wait_for
from .._telemetry.reporter import Telemetry
from .._transport.backpressure import Traffic
from .sample_canceller import SampleCanceller

HEARTBEAT_S = 10.0
HEARTBEAT_TIMEOUT_S = 10.0
SAME_ANSWER_S = 1.0
"""How long what a heartbeat told holds for operations that ask."""
PATIENCE_S = 3.0
"""How long an operation that failed waits for a heartbeat to tell why: its own error is there already."""
SILENCE_S = 120.0
"""A heartbeat that fails for this long is worth a warning."""
FINISH_TIMEOUT_S = 10.0
METHOD_NOT_ALLOWED = 405
FinishStatus = Literal["success", "errored", "interrupted"]
ONCE = RetryConfig(enable_retry_logic=False)


class Session:
    """One session; its counters number the models and samplers made in it. Used on the loop thread."""

    def __init__(
        self,
        connection: Connection,
        telemetry: Telemetry | None = None,
        *,
        user_metadata: Mapping[str, Any] | None = None,
        project_id: str | None = None,
        display_name: str | None = None,
    ) -> None:
        self.connection = connection
        self.telemetry = telemetry
        self.cancellations = SampleCanceller(connection)
        self._user_metadata = dict(user_metadata or {})
        self.project_id = project_id
        self._display_name = display_name
        self._session_id: str | None = None
        self._is_own = True
        self._created = SingleFlight(self._create)
        self._heartbeat: asyncio.Task[None] | None = None
        self._models = 0
        self._samplers = 0
        self._custom_losses = 0
        self._beating = asyncio.Lock()
        self._was_known = False
        """Whether the server ever answered a heartbeat."""
        self._refusal: TinkerError | None = None
        """The response that refused the last heartbeat."""
        self._last_response_at, self._last_beat = 0.0, float("-inf")  # monotonic

    @classmethod
    def join(cls, connection: Connection, telemetry: Telemetry | None = None, *, session_id: str) -> Session:
        """Join a session that another process created: this one sends heartbeats, but does not finish the session."""
        session = cls(connection, telemetry)
        session._session_id = connection.session_state.id = session_id
        session._is_own = False
        session._created = SingleFlight(session._join)
        return session

    async def id(self) -> str:
        """The session's id; the first to ask creates the session, and a failed creation is tried again."""
        return await self._created.get()

    @property
    def known_id(self) -> str | None:
        """The session's id; None before it is created. May be read on any thread."""
        return self._session_id

    def next_model_seq_id(self) -> int:
        """The number of the next model, from 0."""
        self._models += 1
        return self._models - 1

    def next_sampling_session_seq_id(self) -> int:
        """The number of the next sampler, from 0."""
        self._samplers += 1
        return self._samplers - 1

    def next_custom_loss_seq_id(self) -> int:
        """The number of the next loss of the user's own, from 0."""
        self._custom_losses += 1
        return self._custom_losses - 1

    async def close(self, status: FinishStatus | None, detail: str | None) -> None:
        """Stop the heartbeat, and send how the session ended if the server supports that and status is not None."""
        await self._created.close()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            await asyncio.gather(self._heartbeat, return_exceptions=True)
        telemetry = self.telemetry
        is_to_be_told = self._session_id is not None and self._is_own and not self.connection.session_state.is_expired
        session_id = self._session_id if is_to_be_told else None
        await asyncio.gather(
            *([self._finish(session_id, status, detail)] if session_id and status else []),
            *([telemetry.close()] if telemetry is not None else []),
        )

    async def _finish(self, session_id: str, status: FinishStatus, detail: str | None) -> None:
        if not (await self.connection.dialect()).may_have_operation("finish_session"):
            return
        body = FinishSessionRequest(reason=SessionFinishReason(type=status), detail=detail)
        call = finish_session(session_id, body=body)
        try:
            told = self.connection.call(call, Traffic.SESSION, retry=ONCE, timeout_s=FINISH_TIMEOUT_S)
            await wait_for(told, FINISH_TIMEOUT_S)
        except (TinkerError, asyncio.TimeoutError) as error:
            # The session runs out by itself, so nothing is lost but the reason.
            if not isinstance(error, APIStatusError) or error.status_code not in ENDPOINT_MISSING:
                log.warning("session %s: the server could not be told that it is over: %s", session_id, error)

    async def _create(self) -> str:
        dialect = await self.connection.dialect()
        body = CreateSessionRequest(
            tags=_tags(),
            user_metadata=self._user_metadata,
            sdk_version=dialect.ceiling,
            project_id=self.project_id,
            display_name=self._display_name,
        )
        created = await self.connection.call(create_session(body=body), Traffic.SESSION)
        for level, message in (
            (logging.INFO, created.info_message),
            (logging.WARNING, created.warning_message),
            (logging.ERROR, created.error_message),
        ):
            if message:
                log.log(level, "%s", message)
        self._heartbeat = create_detached_task(self._beat(created.session_id))
        self._session_id = self.connection.session_state.id = created.session_id
        if self.telemetry is not None:
            self.telemetry.start(created.session_id)
        return created.session_id

    async def _join(self) -> str:
        assert self._session_id is not None
        self._heartbeat = create_detached_task(self._beat(self._session_id))
        return self._session_id

    async def _beat(self, session_id: str) -> None:
        self._last_response_at = time.monotonic()
        self.connection.session_state.probe = self._is_gone
        while not self.connection.session_state.is_expired:
            await asyncio.sleep(HEARTBEAT_S)
            async with self._beating:
                await self._beat_once(session_id)

    async def _is_gone(self) -> bool:
        """Check whether the server no longer has the session; an operation has failed as if it did not.

        The server is asked at most once a second.
        """
        with suppress(asyncio.TimeoutError):
            await wait_for(self._ask_about_session(), PATIENCE_S)
        return self.connection.session_state.is_expired

    async def _ask_about_session(self) -> None:
        async with self._beating:
            session_id = self._session_id
            if session_id is None:
                return
            if time.monotonic() - self._last_beat > SAME_ANSWER_S:
                await self._beat_once(session_id)
            refusal, self._refusal = self._refusal, None
            if refusal is None or self.connection.session_state.is_expired:
                return
            # No heartbeat has succeeded so far: the session is lost, or the server has no heartbeats.
            if names_session(refusal, session_id) or await self._has_heartbeats():
                self._expire(session_id)

    async def _has_heartbeats(self) -> bool:
        """Check whether the server knows the path of heartbeats: it then refuses the method GET for it."""
        connection = self.connection
        call = session_heartbeat(body=SessionHeartbeatRequest(session_id=""))
        request = attrs.evolve(connection.codec.encode(call, await connection.dialect()), method="GET", content=None)
        try:
            return (await connection.exchange(request, Traffic.SESSION, PATIENCE_S)).status == METHOD_NOT_ALLOWED
        except TinkerError:
            return False

    async def _beat_once(self, session_id: str) -> None:
        if self.connection.session_state.is_expired:
            return
        call = session_heartbeat(body=SessionHeartbeatRequest(session_id=session_id))
        self._refusal = None
        try:
            await self.connection.call(call, Traffic.SESSION, retry=ONCE, timeout_s=HEARTBEAT_TIMEOUT_S)
            self._last_response_at, self._was_known = time.monotonic(), True
        except Exception as error:  # nothing may end the heartbeat but the session's end
            silence = time.monotonic() - self._last_response_at
            is_refused = may_refuse_session(error)
            # A server without heartbeats answers 404 as well, but from the first one on.
            if isinstance(error, SessionExpiredError) or (self._was_known and is_refused):
                self._expire(session_id)
                return
            if is_refused and isinstance(error, TinkerError):
                self._refusal = error
            if silence > SILENCE_S:
                log.warning("session %s: no heartbeat got through for %.0f s: %s", session_id, silence, error)
        finally:
            self._last_beat = time.monotonic()

    def _expire(self, session_id: str) -> None:
        self.connection.session_state.is_expired = True
        log.warning("session %s has expired on the server; its heartbeat ends", session_id)


def finish_status(error: BaseException | None) -> FinishStatus:
    """Return the status of a session whose ``with`` block was left by an error, or without one."""
    return "success" if error is None else "errored" if isinstance(error, Exception) else "interrupted"


def _tags() -> list[str]:
    return [tag for tag in os.environ.get("TINKER_TAGS", "").split(",") if tag]
