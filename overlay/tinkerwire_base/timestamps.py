"""Wire timestamps: RFC 3339 text to aware datetimes."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_RFC_3339 = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d+))?(?P<offset>Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)


def parse_timestamp(text: object) -> datetime:
    """Parse an RFC 3339 timestamp into an aware datetime; without an offset it is UTC.

    Raises:
        ValueError: the text is not a timestamp.
    """
    match = _RFC_3339.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        try:
            shown = repr(text)
        except RecursionError:
            shown = type(text).__name__
        raise ValueError(f"expected an RFC 3339 timestamp such as 2025-01-31T12:00:00Z, got {shown}")
    # Python 3.10 parses neither a "Z" nor fractions of other than 3 or 6 digits.
    fraction = f"{(match['fraction'] or '')[:6]:0<6}"
    try:
        found = datetime.fromisoformat(f"{match['date']}T{match['time']}.{fraction}{_offset(match['offset'])}")
    except ValueError as error:
        raise ValueError(f"expected an RFC 3339 timestamp, got {text!r}: {error}") from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _offset(text: str | None) -> str:
    if text in ("Z", "z"):
        return "+00:00"
    return f"{text[:3]}:{text[-2:]}" if text else ""
