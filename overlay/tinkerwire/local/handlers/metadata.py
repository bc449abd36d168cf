"""Metadata of users, which requests may fill with anything and answers have as texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson


def texts(metadata: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Metadata as answers have it, texts only; other values as JSON."""
    if metadata is None:
        return None
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in metadata.items()}
