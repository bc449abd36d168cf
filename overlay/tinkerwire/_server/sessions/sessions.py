"""Sessions: what clients create belongs to one, and a session that nobody keeps alive expires."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import orjson

from tinkerwire._server.custom_loss.graph import LossGraph
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.ordering.seq_ids import Deduplicator, NumberedRequests
from tinkerwire._server.storage.bounded import BoundedTable

EXPIRED_BYTES = 8 * 2**20
"""Bytes for expired sessions; the newest are still listed."""
SESSION_BYTES = 2048
ID_BYTES = 64
OBJECTS_TO_JSON = 8


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
    models: Deduplicator
    """Request ids of create_model by model_seq_id."""
    samplers: Deduplicator
    """Sampling sessions by sampling_session_seq_id."""
    new_losses: Deduplicator
    """Request ids of create_custom_loss by custom_loss_seq_id."""
    number: int
    """The number of those that were opened before it."""
    losses: dict[str, LossGraph] = attrs.field(factory=dict)
    """Custom losses by loss_id."""


class Sessions:
    """All sessions of a server.

    Args:
        ttl_s: seconds without a sign of life after which a session expires; None for never.
        clock: seconds since the epoch.
        on_expiry: called with each session that expires.
        requests: where the accepted requests of all sessions are kept.
    """

    def __init__(
        self,
        ttl_s: float | None,
        clock: Callable[[], float],
        on_expiry: Callable[[Session], None],
        requests: NumberedRequests,
    ) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._on_expiry = on_expiry
        self._requests = requests
        self._count = 0
        self._alive: dict[str, Session] = {}
        self._expired: BoundedTable[str, Session] = BoundedTable(EXPIRED_BYTES)

    def open(
        self,
        tags: list[str],
        user_metadata: Mapping[str, Any] | None,
        sdk_version: str,
        display_name: str | None = None,
    ) -> Session:
        """A new session."""
        self.expire()
        now = self._clock()
        session_id = f"s-{uuid.uuid4().hex}"
        self._count += 1
        session = Session(
            session_id=session_id,
            tags=tuple(tags),
            user_metadata=dict(user_metadata or {}),
            sdk_version=sdk_version,
            created_at=now,
            last_seen=now,
            display_name=display_name,
            models=Deduplicator("model_seq_id", session_id, self._requests),
            samplers=Deduplicator("sampling_session_seq_id", session_id, self._requests),
            new_losses=Deduplicator("custom_loss_seq_id", session_id, self._requests),
            number=self._count,
        )
        self._alive[session_id] = session
        return session

    def get(self, session_id: str) -> Session:
        """Return the session, alive or not; Refusal 404 when there is none, or it expired long ago."""
        session = self._alive.get(session_id) or self._expired.get(session_id)
        if session is None:
            raise HttpError(404, f"there is no session {session_id!r}; create_session gives one")
        return session

    def alive(self, session_id: str) -> Session:
        """The session, which is thereby kept alive.

        Raises:
            Refusal: 404 when there never was one, 410 when it expired.
        """
        session = self.get(session_id)
        self.expire()
        if session.expired:
            raise HttpError(410, f"session {session_id} expired without a heartbeat; create a new one")
        session.last_seen = self._clock()
        return session

    def newest_first(self) -> list[Session]:
        """Return all sessions, those that expired and are still known too."""
        return sorted([*self._alive.values(), *self._expired.values()], key=lambda each: each.number, reverse=True)

    def expire(self) -> None:
        """Release the sessions that no request named for too long."""
        if self._ttl_s is None:
            return
        limit = self._clock() - self._ttl_s
        for session in [each for each in self._alive.values() if each.last_seen < limit]:
            session.expired = True
            del self._alive[session.session_id]
            self._expired.put(session.session_id, session, _size_bytes(session))
            self._on_expiry(session)


def _size_bytes(session: Session) -> int:
    """Estimate the memory of an expired session, which is that of its texts: Python's objects take more than JSON."""
    texts = orjson.dumps([session.tags, session.user_metadata, session.display_name], default=str)
    ids = sum(ID_BYTES + len(each) for each in [*session.model_ids, *session.sampler_ids])
    return SESSION_BYTES + OBJECTS_TO_JSON * len(texts) + ids
