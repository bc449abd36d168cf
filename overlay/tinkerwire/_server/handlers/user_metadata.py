"""Metadata of users, which requests may fill with anything and answers have as texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tinkerwire._server.http.responses import invalid

DEEPEST = 100
"""How far objects of metadata may stand in each other: less than what JSON is written of."""


def check_depth(metadata: Mapping[str, Any] | None) -> None:
    """Refusal 422 for metadata that could be read, but neither kept nor shown."""
    level: list[Any] = [metadata]
    for _ in range(DEEPEST):
        parts = (each.values() if isinstance(each, Mapping) else each for each in level)
        level = [inner for part in parts if not isinstance(part, str | int | float | None) for inner in part]
        if not level:
            return
    raise invalid("user_metadata", f"more than {DEEPEST} objects stand in each other; keep it flatter")


def texts(metadata: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Metadata as answers have it, texts only; other values as JSON."""
    if metadata is None:
        return None
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in metadata.items()}
