"""A wrapper that never shows a secret, and what a secret that is a JSON web token says of its time."""

from __future__ import annotations

import hashlib
import math
import time
from base64 import urlsafe_b64decode
from typing import Any, NoReturn

import orjson

JWT_PREFIX = "eyJ"
"""How every JSON web token begins."""
UNKNOWN_LIFE_S = 60.0
"""How long a token is taken to last that does not say."""


class Secret:
    """A value that repr, str, format, logs and pickles do not show; :meth:`reveal` is the only way out."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, to be put on the wire and nowhere else."""
        return self._value

    @property
    def fingerprint(self) -> str:
        """By which it can be told from others: the first 8 hexadecimal digits of its SHA-256."""
        return hashlib.sha256(self._value.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    @property
    def is_token(self) -> bool:
        """Whether it has the form of a JSON web token."""
        return self._value.startswith(JWT_PREFIX)

    @property
    def has_end(self) -> bool:
        """True for a token that has an expiry time, as number or text."""
        try:
            float(_claims(self._value)["exp"])
        except (KeyError, TypeError, ValueError):
            return False
        return self.is_token

    def expires_in_s(self) -> float:
        """Seconds for which it is good from now: all the time unless it is a token; 0 when that is over."""
        if not self.is_token:
            return math.inf
        claims = _claims(self._value)
        end, start = _number(claims.get("exp")), _number(claims.get("iat"))
        if end is None:
            return UNKNOWN_LIFE_S
        left = end - time.time()
        return max(0.0, left if start is None else min(left, end - start))

    def claim(self, name: str) -> str | None:
        """What a token says under a name; None for other secrets, and for what is no text."""
        found = _claims(self._value).get(name) if self.is_token else None
        return found if isinstance(found, str) else None

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled; the process that is sent to takes its own, such as TINKER_API_KEY")


def is_sendable(value: str) -> bool:
    """Whether a credential can stand in a header as it is: printable ASCII without blanks, and not nothing."""
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
