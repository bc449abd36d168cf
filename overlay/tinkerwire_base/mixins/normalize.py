"""Normalization of field values while a frozen model is constructed."""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from ..lazy_numpy import np
from ..validators import require_number

set_field: Callable[[Any, str, Any], None] = object.__setattr__
"""Set a field of a frozen model."""


def copy_list(values: Any) -> Any:
    """Copy a list, as callers often reuse and mutate theirs; return arrays as they are."""
    return list(values) if isinstance(values, (list, tuple)) else values


def decode_bytes(place: str, content: str, value: Any) -> bytes:
    """Return bytes, or decode base64 text.

    Args:
        place: the name of the field in errors.
        content: a description of the bytes in errors.
        value: bytes, or base64 text.

    Raises:
        TypeError: the value is neither bytes nor text.
        ValueError: the text is not base64.
    """
    if isinstance(value, str):
        try:
            return b64decode(value, validate=True)
        except ValueError as error:
            raise ValueError(f"{place}: text is not base64 ({error})") from None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{place}: expected the bytes of {content}, or their base64 text, got {type(value).__name__}")
    return bytes(value)


def require_float(place: str, value: Any) -> None:
    """Raise TypeError unless a value is a number, which may be NaN or infinite."""
    is_non_finite = isinstance(value, float | np.floating) and not math.isfinite(value)
    if not is_non_finite:
        require_number(place, value)
