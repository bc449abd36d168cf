"""Wrapper that hides a secret, and the claims of a secret that is a JSON web token."""

from __future__ import annotations

import hashlib
import math
import time
from base64 import urlsafe_b64decode
from typing import Any, NoReturn

import orjson

JWT_PREFIX = "eyJ"
"""Beginning of every JSON web token."""
UNKNOWN_LIFE_S = 60.0
"""Assumed lifetime of a token without an expiry."""


class Secret:
    """Value that repr, str, format, logs and pickles do not show; only :meth:`reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, for the wire only."""
        return self._value

    @property
    def fingerprint(self) -> str:
        """Return the first 8 hexadecimal digits of its SHA-256, which distinguish it from other secrets."""
        return hashlib.sha256(self._value.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    @property
    def is_token(self) -> bool:
        """Return whether it has the form of a JSON web token."""
        return self._value.startswith(JWT_PREFIX)

    @property
    def has_end(self) -> bool:
        """Return whether it is a token with an expiry, as number or text."""
        try:
            float(_claims(self._value)["exp"])
        except (KeyError, TypeError, ValueError):
            return False
        return self.is_token

    def expires_in_s(self) -> float:
        """Return the seconds until it expires: infinity unless it is a token, 0 after the expiry."""
        if not self.is_token:
            return math.inf
        claims = _claims(self._value)
        end, start = _number(claims.get("exp")), _number(claims.get("iat"))
        if end is None:
            return UNKNOWN_LIFE_S
        remaining_s = end - time.time()
        return max(0.0, remaining_s if start is None else min(remaining_s, end - start))

    def lifetime_s(self) -> float:
        """Return the seconds from the issue of a token to its expiry; 0 unless its claims have both."""
        claims = _claims(self._value) if self.is_token else {}
        end, start = _number(claims.get("exp")), _number(claims.get("iat"))
        return 0.0 if end is None or start is None else max(0.0, end - start)

    def claim(self, name: str) -> str | None:
        """Return a claim of a token; None for other secrets, and for claims that are not text."""
        value = _claims(self._value).get(name) if self.is_token else None
        return value if isinstance(value, str) else None

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled; set a credential in the other process, such as TINKER_API_KEY")


def is_sendable(value: str) -> bool:
    """Return whether a credential fits into a header: printable ASCII without spaces, not empty."""
    return value.isascii() and value.isprintable() and not any(ch.isspace() for ch in value) and bool(value)


def _claims(token: str) -> dict[str, Any]:
    try:
        part = token.split(".")[1]
        claims = orjson.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
