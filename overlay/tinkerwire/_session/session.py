"""A session with a server: created when it is first needed, kept alive by heartbeats, finished by close."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any, Literal

from tinkerwire_base.errors import APIStatusError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.session import create_session, finish_session

from .._connection.connection import Connection
from .._connection.dialect_resolver import ENDPOINT_MISSING
from .._connection.retry import SINGLE_ATTEMPT
from .._futures.logger import log
from .._futures.single_flight import SingleFlight
from .._futures.timeout import wait_for
from .._telemetry.reporter import Telemetry
from .._transport.backpressure import Traffic
from .heartbeat import Heartbeat
from .sample_canceller import SampleCanceller

FINISH_TIMEOUT_S = 10.0
FinishStatus = Literal["success", "errored", "interrupted"]


class Session:
    """One session; its counters number the models and samplers that are made in it. Used on the loop thread.

    Args:
        connection: sends the requests.
        telemetry: reports the events of the session; None if telemetry is disabled.
        user_metadata: stored with the session.
        project_id: the project of the session.
        display_name: the name that people read.
    """

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
        self.sample_canceller = SampleCanceller(connection)
        self._user_metadata = dict(user_metadata or {})
        self.project_id = project_id
        self._display_name = display_name
        self._session_id: str | None = None
        self._is_own = True
        self._creation = SingleFlight(self._create)
        self._heartbeat = Heartbeat(connection)
        self._models = 0
        self._samplers = 0
        self._custom_losses = 0

    @classmethod
    def join(cls, connection: Connection, telemetry: Telemetry | None = None, *, session_id: str) -> Session:
        """Join a session that another process created: this one sends heartbeats, but does not finish the session."""
        session = cls(connection, telemetry)
        session._session_id = session_id
        connection.session_state.set_id(session_id)
        session._is_own = False
        session._creation = SingleFlight(session._join)
        return session

    async def id(self) -> str:
        """Return the session's id; the first call creates the session, and so does the next after a failure."""
        return await self._creation.get()

    @property
    def known_id(self) -> str | None:
        """The session's id; None before it is created. May be read on any thread."""
        return self._session_id

    def next_model_seq_id(self) -> int:
        """Return the number of the next model, from 0."""
        self._models += 1
        return self._models - 1

    def next_sampling_session_seq_id(self) -> int:
        """Return the number of the next sampler, from 0."""
        self._samplers += 1
        return self._samplers - 1

    def next_custom_loss_seq_id(self) -> int:
        """Return the number of the next custom loss, from 0."""
        self._custom_losses += 1
        return self._custom_losses - 1

    async def renew(self, lost_id: str) -> None:
        """Forget a session that the server lost; its next use creates another one, and counts from 0.

        Args:
            lost_id: the id of the lost session; another session stays.
        """
        if self._session_id != lost_id:
            return
        heartbeat, self._heartbeat = self._heartbeat, Heartbeat(self.connection)
        self._session_id = None
        self._creation = SingleFlight(self._create)
        self._models = self._samplers = self._custom_losses = 0
        self.connection.session_state.reset()
        await heartbeat.stop()

    async def close(self, status: FinishStatus | None, detail: str | None) -> None:
        """Stop the heartbeats, and finish the session on the server.

        Args:
            status: the finish status, for servers that support it; with None the server gets no finish request.
            detail: further text for the server.
        """
        await self._creation.close()
        await self._heartbeat.stop()
        session_id = self._session_id
        is_finished_here = self._is_own and status is not None and not self.connection.session_state.is_expired
        await asyncio.gather(
            *([self._finish(session_id, status, detail)] if session_id and status and is_finished_here else []),
            *([self.telemetry.close()] if self.telemetry is not None else []),
        )

    async def _finish(self, session_id: str, status: FinishStatus, detail: str | None) -> None:
        if not (await self.connection.dialect()).may_have_operation("finish_session"):
            return
        body = models.FinishSessionRequest(reason=models.SessionFinishReason(type=status), detail=detail)
        call = finish_session(session_id, body=body)
        try:
            sending = self.connection.call(call, Traffic.SESSION, retry=SINGLE_ATTEMPT, timeout_s=FINISH_TIMEOUT_S)
            await wait_for(sending, FINISH_TIMEOUT_S)
        except (TinkerError, asyncio.TimeoutError) as error:
            # The server expires the session in any case; only the status is lost.
            if not isinstance(error, APIStatusError) or error.status_code not in ENDPOINT_MISSING:
                log.warning("session %s could not be finished on the server: %s", session_id, error)

    async def _create(self) -> str:
        dialect = await self.connection.dialect()
        body = models.CreateSessionRequest(
            tags=_read_tags(),
            user_metadata=self._user_metadata,
            sdk_version=dialect.max_version,
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
        self._heartbeat.start(created.session_id)
        self._session_id = created.session_id
        self.connection.session_state.set_id(created.session_id)
        if self.telemetry is not None:
            self.telemetry.start(created.session_id)
        return created.session_id

    async def _join(self) -> str:
        assert self._session_id is not None
        self._heartbeat.start(self._session_id)
        return self._session_id


def finish_status(error: BaseException | None) -> FinishStatus:
    """Return the status of a session whose ``with`` block was left by an error, or without one."""
    return "success" if error is None else "errored" if isinstance(error, Exception) else "interrupted"


def _read_tags() -> list[str]:
    return [tag for tag in os.environ.get("TINKER_TAGS", "").split(",") if tag]
