"""Reports of exceptions without private data: class, call, status and locations in this package.

The text of an exception may hold anything that a user or a server put there: prompts, tokens, names, keys. No report
contains text or values.
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
"""Maximum number of causes of an exception that are examined."""


def is_user_error(error: BaseException) -> bool:
    """Return whether the user most likely caused the error, rather than server, network or client."""
    return any(
        (isinstance(cause, RequestFailedError) and cause.category is RequestErrorCategory.User)
        or (400 <= (_status(cause) or 0) < 500 and _status(cause) != 408)
        for cause in _chain(error)
    )


def error_fields(error: BaseException) -> dict[str, Any]:
    """Return the class, the status and the summary of an error."""
    fields: dict[str, Any] = {"error_type": type(error).__name__, "message": summary(error)}
    if _status(error) is not None:
        fields["status_code"] = _status(error)
    return fields


def summary(error: BaseException) -> str:
    """Return the class, the call and the status of an error as text, without the error's own text."""
    parts = [type(error).__name__]
    request = error.request if isinstance(error, APIError) else None
    if request is not None:
        parts.append(f"{request.method} {urlsplit(request.url).path}")
    if _status(error) is not None:
        parts.append(f"HTTP {_status(error)}")
    if isinstance(error, RequestFailedError):
        parts.append(f"category {error.category}")
    return ", ".join(parts)


def traceback_locations(error: BaseException) -> str:
    """Return the frames of the traceback in this package, one per line, without code, paths or the user's frames."""
    lines = [
        f"{file}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if (file := _package_path(Path(frame.filename))) is not None
    ]
    return "\n".join(lines)


def _package_path(file: Path) -> str | None:
    """Return the path of a file of this project from its package on; None for any other file."""
    for package in PACKAGES:
        root = Path(str(sys.modules[package].__file__)).parent
        if file.is_relative_to(root):
            return f"{package}/{file.relative_to(root).as_posix()}"
    return None


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
