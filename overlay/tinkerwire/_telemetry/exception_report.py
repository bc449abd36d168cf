"""What may be told of an exception: its class, the call, the status, the places in this package; no text or value.

The text of an exception can hold anything that a user or a server put there: prompts, tokens, names, keys.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tinkerwire_base.errors import APIError, RequestErrorCategory, RequestFailedError

PACKAGES = ("tinkerwire", "tinkerwire_base", "tinkerwire_generated")
MAX_CAUSES = 20
"""Exceptions that others come from are followed so far."""


def is_users(error: BaseException) -> bool:
    """Whether the user rather than server, network or client is to blame, as far as can be told."""
    return any(
        (isinstance(each, RequestFailedError) and each.category is RequestErrorCategory.User)
        or (400 <= (_status(each) or 0) < 500 and _status(each) != 408)
        for each in _chain(error)
    )


def details(error: BaseException) -> dict[str, Any]:
    """Class, status and a message made of what is known to be harmless."""
    found: dict[str, Any] = {"error_type": type(error).__name__, "message": summary(error)}
    if _status(error) is not None:
        found["status_code"] = _status(error)
    return found


def summary(error: BaseException) -> str:
    """The call and the status of an error; its own text is not in it."""
    parts = [type(error).__name__]
    request = error.request if isinstance(error, APIError) else None
    if request is not None:
        parts.append(f"{request.method} {urlsplit(request.url).path}")
    if _status(error) is not None:
        parts.append(f"HTTP {_status(error)}")
    if isinstance(error, RequestFailedError):
        parts.append(f"category {error.category}")
    return ", ".join(parts)


def places(error: BaseException) -> str:
    """Where in this package it passed, one place a line; neither code nor paths nor frames of the user's."""
    frames = [
        f"{place}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if (place := _place(Path(frame.filename))) is not None
    ]
    return "\n".join(frames)


def _place(file: Path) -> str | None:
    """A file of this project by its package and its path in there; None for any other."""
    for package in PACKAGES:
        root = Path(str(sys.modules[package].__file__)).parent
        if file.is_relative_to(root):
            return f"{package}/{file.relative_to(root).as_posix()}"
    return None


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if each is None:
            return
        yield each
        each = each.__cause__ or each.__context__
