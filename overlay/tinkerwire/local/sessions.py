"""Sessions: what clients create belongs to one, and a session that nobody keeps alive expires."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from tinkerwire.local.answers import Refusal
from tinkerwire.local.loss_graph import LossGraph
from tinkerwire.local.promises import Promise
from tinkerwire.local.sequence import Resends


@attrs.define(kw_only=True)
class Session:
    """One session, and what was created under it, in the order of creation."""

    session_id: str
    tags: tuple[str, ...]
    user_metadata: Mapping[str, Any]
    sdk_version: str
    created_at: float
    last_seen: float
    display_name: str | None = None
    project_id: str | None = None
    ending: str | None = None
    """How its client said it was done: success, errored or interrupted."""
    expired: bool = False
    model_ids: list[str] = attrs.field(factory=list)
    sampler_ids: list[str] = attrs.field(factory=list)
    models: Resends[Promise] = attrs.field(factory=lambda: Resends("model_seq_id"))
    """Promises of create_model by model_seq_id."""
    samplers: Resends[str] = attrs.field(factory=lambda: Resends("sampling_session_seq_id"))
    """Sampling sessions by sampling_session_seq_id."""
    losses: dict[str, LossGraph] = attrs.field(factory=dict)
    """Custom losses by loss_id."""
    loss_promises: Resends[Promise] = attrs.field(factory=lambda: Resends("custom_loss_seq_id"))
    """Promises of create_custom_loss by custom_loss_seq_id."""


class Sessions:
    """All sessions of a server.

    Args:
        ttl_s: seconds without a sign of life after which a session expires; None for never.
        clock: seconds since the epoch.
        on_expiry: is told of each session that expires.
    """

    def __init__(self, ttl_s: float | None, clock: Callable[[], float], on_expiry: Callable[[Session], None]) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._on_expiry = on_expiry
        self._sessions: dict[str, Session] = {}

    def open(
        self,
        tags: list[str],
        user_metadata: Mapping[str, Any] | None,
        sdk_version: str,
        display_name: str | None = None,
    ) -> Session:
        """A new session."""
        now = self._clock()
        session = Session(
            session_id=f"s-{uuid.uuid4().hex}",
            tags=tuple(tags),
            user_metadata=dict(user_metadata or {}),
            sdk_version=sdk_version,
            created_at=now,
            last_seen=now,
            display_name=display_name,
        )
        self._sessions[session.session_id] = session
        return session

    def get(self, session_id: str) -> Session:
        """The session, alive or not; Refusal 404 when there never was one."""
        session = self._sessions.get(session_id)
        if session is None:
            raise Refusal(404, f"there is no session {session_id!r}; create_session gives one")
        return session

    def alive(self, session_id: str) -> Session:
        """The session, which is thereby kept alive.

        Raises:
            Refusal: 404 when there never was one, 410 when it expired.
        """
        session = self.get(session_id)
        self.expire()
        if session.expired:
            raise Refusal(410, f"session {session_id} expired without a heartbeat; create a new one")
        session.last_seen = self._clock()
        return session

    def newest_first(self) -> list[Session]:
        """All sessions, those that expired too."""
        return list(reversed(self._sessions.values()))

    def expire(self) -> None:
        """Let go of the sessions that were not heard of for too long."""
        if self._ttl_s is None:
            return
        limit = self._clock() - self._ttl_s
        for session in self._sessions.values():
            if not session.expired and session.last_seen < limit:
                session.expired = True
                self._on_expiry(session)
