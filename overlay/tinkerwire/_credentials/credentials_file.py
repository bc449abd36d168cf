"""Reading of the credentials file in the home folder, which the official SDK and ``tinkerwire auth`` write."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from tinkerwire_base.errors import TinkerError

from .secret import Secret, is_sendable

FILE = Path(".tinker", "credentials.json")
"""Its place in the home folder."""
VERSION = 1
OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Permissions of other users, none of which may be set."""


def credentials_path() -> Path:
    """Return the path of the file, whether it exists or not; raise TinkerError without a home folder."""
    try:
        return Path.home() / FILE
    except RuntimeError:
        raise TinkerError(f"~/{FILE}: this user has no home folder; set HOME or TINKER_API_KEY") from None


def read_default_key() -> Secret | None:
    """Return the default key of the file; None without a file or a default.

    Raises:
        TinkerError: other users can read the file, this user cannot, or its format is unknown.
    """
    key = _default_key(read_credentials_file() or {})
    if isinstance(key, str):
        raise unusable(key)
    return key


def read_credentials_file() -> dict[str, Any] | None:
    """Return the file's JSON object of a known version; None without a file.

    Raises:
        TinkerError: see :func:`read_default_key`.
    """
    path = credentials_path()
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & OTHERS:
                raise TinkerError(
                    f"{path}: other users of this machine can access the API keys in it (mode {mode:04o}); "
                    f"run chmod 600 {path}, or set TINKER_API_KEY"
                )
            stored = _parse(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise TinkerError(
            f"{path}: cannot be read ({error.strerror}); make it readable, or set TINKER_API_KEY"
        ) from None
    if isinstance(stored, str):
        raise unusable(stored)
    return stored


def unusable(problem: str) -> TinkerError:
    """Return the error for a file of an unknown format."""
    return TinkerError(f"{credentials_path()}: {problem}; repair or remove the file, or set TINKER_API_KEY")


# The following functions return problems instead of raising them: no traceback may have a frame with the keys.


def _parse(content: bytes) -> dict[str, Any] | str:
    try:
        stored: Any = json.loads(content)
    except (ValueError, RecursionError):
        return "the file must be JSON"
    if not isinstance(stored, dict) or stored.get("version", VERSION) != VERSION:
        return f"version must be {VERSION}"
    return stored


def _default_key(stored: dict[str, Any]) -> Secret | str | None:
    name, keys = stored.get("default"), stored.get("keys") or {}
    if name is None:
        return None
    record = keys.get(name) if isinstance(keys, dict) and isinstance(name, str) else None
    value = record.get("key") if isinstance(record, dict) else None
    if not isinstance(value, str) or not is_sendable(value):
        return "the default must be the id of an API key in the file"
    return Secret(value)
