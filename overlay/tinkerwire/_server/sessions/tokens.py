"""Short-lived tokens that clients use in place of an API key."""

from __future__ import annotations

import threading
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import orjson

from tinkerwire._server.http.responses import HttpError

TOKEN_LIFETIME_S = 3600.0
OWNER = "local"
"""Name of the only user and of the only organization."""
TOKEN_PREFIX = "eyJ"
"""Prefix of every JSON web token."""


class Tokens:
    """JSON web tokens without a signature; the server keeps a table of the valid ones.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._expires_at: dict[str, float] = {}

    def issue(self) -> str:
        """Issue a token, valid for :data:`TOKEN_LIFETIME_S`."""
        now = self._clock()
        claims = {
            "iat": int(now),
            "exp": int(now + TOKEN_LIFETIME_S),
            "jti": uuid.uuid4().hex,
            "sub": OWNER,
            "org_id": OWNER,
        }
        token = f"{_encode({'alg': 'none', 'typ': 'JWT'})}.{_encode(claims)}."
        with self._lock:
            self._expires_at = {token: end for token, end in self._expires_at.items() if end > now}
            self._expires_at[token] = now + TOKEN_LIFETIME_S
        return token

    def validate(self, token: str) -> None:
        """Accept a valid token.

        Raises:
            HttpError: 401, on which clients exchange their key again, for an expired or unknown token.
        """
        with self._lock:
            expires_at = self._expires_at.get(token)
        if expires_at is None or expires_at <= self._clock():
            raise HttpError(
                401,
                "the token is expired or unknown; request a new one from auth/token",
                {"www-authenticate": 'Bearer error="invalid_token"'},
            )


def _encode(value: dict[str, Any]) -> str:
    return urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()
