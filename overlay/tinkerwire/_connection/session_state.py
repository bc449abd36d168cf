"""The state of the session that a connection is used for: its id, and whether the server still has it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tinkerwire_base.errors import APIStatusError, SessionExpiredError, TinkerError

from .._transport.backpressure import Traffic
from .session_loss import may_mean_loss, names_lost_session

SESSION_EXPIRED_STATUS = 410
"""Status of a request in a session that the server no longer has."""
SESSION_TRAFFIC = frozenset({Traffic.SESSION, Traffic.TRAINING, Traffic.SAMPLING})


class SessionState:
    """The id and the expiry of a session. Used on the loop thread."""

    def __init__(self) -> None:
        self.id = ""
        """Empty before the session is created."""
        self.is_expired = False
        """True once the server no longer has the session."""
        self._probe: Callable[[], Coroutine[Any, Any, bool]] | None = None

    def set_id(self, session_id: str) -> None:
        """Set the id of the session once the server has created it."""
        self.id = session_id

    def set_probe(self, probe: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        """Set a function that finds out from the server whether the session has expired."""
        self._probe = probe

    def mark_expired(self, session_id: str) -> None:
        """Record that the server no longer has a session; nothing changes if the connection uses another one by now."""
        if session_id == self.id:
            self.is_expired = True

    def reset(self) -> None:
        """Return to the state before a session, to create another one."""
        self.id, self.is_expired, self._probe = "", False, None

    def is_used_by(self, traffic: Traffic) -> bool:
        """Check whether requests of a kind belong to the session."""
        return bool(self.id) and traffic in SESSION_TRAFFIC

    def is_session_expired(self, session_id: str) -> bool:
        """Check whether the server no longer has a session; a session that was replaced by another one was lost."""
        return self.is_expired or (bool(session_id) and session_id != self.id)

    async def is_lost(self, error: TinkerError, session_id: str) -> bool:
        """Check whether an error means that the server no longer has the session, as after a restart.

        Servers name the missing thing in many ways, such as the model or the request. Unless the error names the
        session, a probe finds out whether the session is lost.

        Args:
            error: the error.
            session_id: the session in which the request was sent.
        """
        if not session_id or not may_mean_loss(error):
            return False
        if self.is_session_expired(session_id) or names_lost_session(error):
            return True
        return self._probe is not None and await self._probe()

    async def is_ended_by(
        self, error: TinkerError, traffic: Traffic, raise_immediately: tuple[type[TinkerError], ...], session_id: str
    ) -> bool:
        """Check whether the last error of a request means that its session is gone.

        Args:
            error: the error.
            traffic: the kind of the request.
            raise_immediately: errors that the caller handles itself, except for status 410.
            session_id: the session in which the request was sent.
        """
        if not isinstance(error, APIStatusError) or not self.is_used_by(traffic):
            return False
        if error.status_code == SESSION_EXPIRED_STATUS:
            return True
        # The probe is a heartbeat. A heartbeat that started another one would never end.
        if isinstance(error, raise_immediately) or traffic == Traffic.SESSION:
            return False
        return await self.is_lost(error, session_id)

    def expired_error(self, reason: str, session_id: str) -> SessionExpiredError:
        """Return the error of an operation whose session the server no longer has."""
        return SessionExpiredError(
            f"session {session_id}: the server no longer has it ({reason}); create a new "
            "ServiceClient, and resume from weights that save_state() saved: "
            "create_training_client_from_state_with_optimizer(PATH)",
            session_id=session_id,
        )
