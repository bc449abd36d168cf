"""JSON web tokens for tests."""

from __future__ import annotations

import itertools
import json
import time
from base64 import urlsafe_b64encode
from typing import Any

_numbers = itertools.count()


def token(life_s: float | None = 3600.0, **claims: Any) -> str:
    """Return a unique token that expires after that many seconds; None for a token without an expiry."""
    times = {} if life_s is None else {"iat": time.time(), "exp": time.time() + life_s}
    parts = ({"alg": "none", "typ": "JWT"}, {**times, "jti": next(_numbers), **claims}, {"sign": "ature"})
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
