"""Functions of the official SDK that scripts about serialization import."""

from __future__ import annotations

from typing import Any


def model_dump(model: Any, **options: Any) -> dict[str, Any]:
    """``model.model_dump``, with its options."""
    found: dict[str, Any] = model.model_dump(**options)
    return found
