"""Checks of the arguments of downloads and uploads."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tinkerwire_base.validators import require_int, require_text


def absolute_path(name: str, value: Any) -> Path:
    """Return a path argument as an absolute path.

    Raises:
        TypeError: the value is neither a str nor a path.
        ValueError: the path is empty, or no path can have its characters.
    """
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name}: expected a path, got {type(value).__name__}")
    text = os.fspath(value)
    require_text(name, text)
    if not text.strip() or "\0" in text:
        raise ValueError(f"{name}: {text!r:.100} is not a path")
    return Path(text).absolute()


def require_limit(name: str, value: Any) -> None:
    """Require a number of bytes."""
    require_int(name, value)
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


def require_optional_callback(name: str, value: Any) -> None:
    """Require None or a function."""
    if value is not None and not callable(value):
        raise TypeError(f"{name}: expected a function, got {type(value).__name__}")


def read_texts(name: str, value: Any) -> list[str]:
    """Return a collection of texts as a list; raise TypeError or ValueError for another value."""
    if not isinstance(value, Collection) or isinstance(value, str | bytes | Mapping):
        raise TypeError(f"{name}: expected a list of str, got {type(value).__name__}")
    texts = list(value)
    for text in texts:
        require_text(name, text)
    return texts
