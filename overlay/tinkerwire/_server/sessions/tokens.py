"""Short-lived tokens that stand in for an API key."""

from __future__ import annotations

import threading
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import orjson

from tinkerwire._server.http.responses import HttpError

LIFETIME_S = 3600.0
OWNER = "local"
"""The one user, and the one organization."""
PREFIX = "eyJ"
"""How every JSON web token begins."""


class Tokens:
    """JSON web tokens without a signature: the server knows those that it gave out by heart.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._ends: dict[str, float] = {}

    def issue(self) -> str:
        """A new token, good for :data:`LIFETIME_S`."""
        now = self._clock()
        claims = {"iat": int(now), "exp": int(now + LIFETIME_S), "jti": uuid.uuid4().hex, "sub": OWNER, "org_id": OWNER}
        token = f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(claims)}."
        with self._lock:
            self._ends = {each: end for each, end in self._ends.items() if end > now}
            self._ends[token] = now + LIFETIME_S
        return token

    def check(self, token: str) -> None:
        """Refusal 401, which tells clients to exchange their key again, unless the token is good."""
        with self._lock:
            end = self._ends.get(token)
        if end is None or end <= self._clock():
            raise HttpError(
                401,
                "the token is over or was not given out here; ask auth/token for another",
                {"www-authenticate": 'Bearer error="invalid_token"'},
            )


def _part(value: dict[str, Any]) -> str:
    return urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()
