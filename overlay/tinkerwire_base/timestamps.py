"""Wire timestamps: RFC 3339 text to aware datetimes."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_FRACTION = re.compile(r"\.(\d+)")


def parse_timestamp(text: object) -> datetime:
    """The aware datetime of an RFC 3339 text; a text without offset counts as UTC. ValueError if it is none."""
    if not isinstance(text, str):
        raise ValueError(f"expected an RFC 3339 timestamp, got {text!r}")
    # Python 3.10 reads neither a "Z" nor fractions of other than 3 or 6 digits.
    plain = _FRACTION.sub(lambda m: f".{m[1][:6]:0<6}", text.strip())
    if plain[-1:] in ("Z", "z"):
        plain = plain[:-1] + "+00:00"
    try:
        found = datetime.fromisoformat(plain)
    except ValueError:
        raise ValueError(f"expected an RFC 3339 timestamp, got {text!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
