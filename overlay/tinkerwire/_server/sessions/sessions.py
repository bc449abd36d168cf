"""Sessions: every object that clients create belongs to one, and a session without requests expires."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import orjson

from tinkerwire._server.bounded_table import BoundedTable
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.ordering.seq_ids import Deduplicator, NumberedRequests

EXPIRED_BYTES = 8 * 2**20
"""Maximum memory of expired sessions; the newest stay listed."""
SESSION_BYTES = 2048
ID_BYTES = 64
JSON_TO_OBJECT_RATIO = 8
"""Memory of Python objects, relative to the size of their JSON."""


@attrs.define(kw_only=True)
class ServerSession:
    """A session and the ids of the objects that were created in it, in order of creation."""

    session_id: str
    tags: tuple[str, ...]
    user_metadata: Mapping[str, Any]
    sdk_version: str
    created_at: float
    last_request_at: float
    display_name: str | None = None
    project_id: str | None = None
    finish_reason: str | None = None
    """Outcome that the client reported: success, errored or interrupted."""
    expired: bool = False
    model_ids: list[str] = attrs.field(factory=list)
    sampler_ids: list[str] = attrs.field(factory=list)
    loss_ids: list[str] = attrs.field(factory=list)
    model_requests: Deduplicator
    """Request ids of create_model by model_seq_id."""
    sampler_requests: Deduplicator
    """Sampling session ids by sampling_session_seq_id."""
    loss_requests: Deduplicator
    """Request ids of create_custom_loss by custom_loss_seq_id."""
    number: int
    """Position among all sessions of the server, in order of creation."""


class Sessions:
    """All sessions of a server.

    Args:
        ttl_s: seconds without a request after which a session expires; None disables expiry.
        clock: seconds since the epoch.
        on_expired: receives each session that expires.
        requests: table of the accepted requests of all sessions.
    """

    def __init__(
        self,
        ttl_s: float | None,
        clock: Callable[[], float],
        on_expired: Callable[[ServerSession], None],
        requests: NumberedRequests,
    ) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._on_expired = on_expired
        self._requests = requests
        self._count = 0
        self._active: dict[str, ServerSession] = {}
        self._expired: BoundedTable[str, ServerSession] = BoundedTable(EXPIRED_BYTES)

    def create(
        self,
        tags: list[str],
        user_metadata: Mapping[str, Any] | None,
        sdk_version: str,
        display_name: str | None = None,
    ) -> ServerSession:
        """Create a session."""
        self.expire()
        now = self._clock()
        session_id = f"s-{uuid.uuid4().hex}"
        self._count += 1
        session = ServerSession(
            session_id=session_id,
            tags=tuple(tags),
            user_metadata=dict(user_metadata or {}),
            sdk_version=sdk_version,
            created_at=now,
            last_request_at=now,
            display_name=display_name,
            model_requests=Deduplicator("model_seq_id", session_id, self._requests),
            sampler_requests=Deduplicator("sampling_session_seq_id", session_id, self._requests),
            loss_requests=Deduplicator("custom_loss_seq_id", session_id, self._requests),
            number=self._count,
        )
        self._active[session_id] = session
        return session

    def get(self, session_id: str) -> ServerSession:
        """Return a session, active or expired.

        Raises:
            HttpError: 404 if the session is unknown, or expired long ago.
        """
        session = self._active.get(session_id) or self._expired.get(session_id)
        if session is None:
            raise HttpError(404, f"unknown session {session_id!r}; create one with create_session")
        return session

    def require_active(self, session_id: str) -> ServerSession:
        """Return an active session and restart its time to live.

        Raises:
            HttpError: 404 if the session is unknown, 410 if it expired.
        """
        session = self.get(session_id)
        self.expire()
        if session.expired:
            raise HttpError(410, f"session {session_id} expired without a heartbeat; create a new session")
        session.last_request_at = self._clock()
        return session

    def newest_first(self) -> list[ServerSession]:
        """Return all known sessions, active and expired."""
        sessions = [*self._active.values(), *self._expired.values()]
        return sorted(sessions, key=lambda session: session.number, reverse=True)

    def expire(self) -> None:
        """Expire the sessions without a request during their time to live."""
        if self._ttl_s is None:
            return
        limit = self._clock() - self._ttl_s
        for session in [session for session in self._active.values() if session.last_request_at < limit]:
            session.expired = True
            del self._active[session.session_id]
            self._expired.put(session.session_id, session, _estimate_bytes(session))
            self._on_expired(session)


def _estimate_bytes(session: ServerSession) -> int:
    """Estimate the memory of an expired session from its texts."""
    texts = orjson.dumps([session.tags, session.user_metadata, session.display_name], default=str)
    object_ids = [*session.model_ids, *session.sampler_ids, *session.loss_ids]
    ids = sum(ID_BYTES + len(object_id) for object_id in object_ids)
    return SESSION_BYTES + JSON_TO_OBJECT_RATIO * len(texts) + ids
