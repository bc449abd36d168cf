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
from tinkerwire._server.storage.journal import Journal

EXPIRED_BYTES = 8 * 2**20
"""Maximum memory of expired sessions; the newest stay listed."""
SESSION_BYTES = 2048
ID_BYTES = 64
RECORD_INTERVAL_S = 60.0
"""Seconds for which the time of a session's last request may be missing from the journal."""
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
    recorded_at: float
    """Time of the last request in the journal."""


_RECORDED = ("tags", "user_metadata", "sdk_version", "created_at", "display_name", "project_id", "finish_reason")


class Sessions:
    """All sessions of a server.

    Args:
        ttl_s: seconds without a request after which a session expires; None disables expiry.
        clock: seconds since the epoch.
        on_expired: receives each session that expires.
        requests: table of the accepted requests of all sessions.
        journal: records the sessions.
    """

    def __init__(
        self,
        ttl_s: float | None,
        clock: Callable[[], float],
        on_expired: Callable[[ServerSession], None],
        requests: NumberedRequests,
        journal: Journal,
    ) -> None:
        self._journal = journal
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
        project_id: str | None = None,
    ) -> ServerSession:
        """Create a session."""
        self.expire()
        now = self._clock()
        fields = {
            "tags": tags,
            "user_metadata": dict(user_metadata or {}),
            "sdk_version": sdk_version,
            "created_at": now,
            "display_name": display_name,
            "project_id": project_id,
        }
        session = self._add(f"s-{uuid.uuid4().hex}", self._count + 1, fields, now)
        self.record(session)
        return session

    def restore(self) -> None:
        """Add the sessions of the journal."""
        for row in self._journal.read_sessions():
            self._add(*row)

    def record(self, session: ServerSession) -> None:
        """Record a session, new or changed."""
        fields = {name: getattr(session, name) for name in _RECORDED}
        session.recorded_at = session.last_request_at
        self._journal.put_session(session.session_id, session.number, fields, session.last_request_at)

    def _add(self, session_id: str, number: int, fields: Mapping[str, Any], last_request_at: float) -> ServerSession:
        session = ServerSession(
            session_id=session_id,
            **{**fields, "tags": tuple(fields["tags"])},
            last_request_at=last_request_at,
            model_requests=Deduplicator("model_seq_id", session_id, self._requests),
            sampler_requests=Deduplicator("sampling_session_seq_id", session_id, self._requests),
            loss_requests=Deduplicator("custom_loss_seq_id", session_id, self._requests),
            number=number,
            recorded_at=last_request_at,
        )
        self._count = max(self._count, number)
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
        if session.last_request_at - session.recorded_at >= RECORD_INTERVAL_S:
            session.recorded_at = session.last_request_at
            self._journal.touch_session(session_id, session.last_request_at)
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
