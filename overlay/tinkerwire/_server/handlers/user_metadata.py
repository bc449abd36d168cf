"""User metadata: any JSON in requests, strings in responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tinkerwire._server.http.responses import field_error

MAX_METADATA_DEPTH = 100
"""Maximum nesting depth of metadata, below the limit of the JSON encoder."""


def check_depth(metadata: Mapping[str, Any] | None) -> None:
    """Reject metadata that is nested too deeply to be encoded.

    Raises:
        HttpError: 422 beyond :data:`MAX_METADATA_DEPTH`.
    """
    level: list[Any] = [metadata]
    for _ in range(MAX_METADATA_DEPTH):
        containers = (value.values() if isinstance(value, Mapping) else value for value in level)
        level = [inner for values in containers if not isinstance(values, str | int | float | None) for inner in values]
        if not level:
            return
    raise field_error("user_metadata", f"must be nested at most {MAX_METADATA_DEPTH} levels deep")


def stringify_values(metadata: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return metadata with all values as strings; other values become JSON."""
    if metadata is None:
        return None
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in metadata.items()}
