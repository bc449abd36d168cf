"""The credentials file that signing in to the Tinker service leaves in the home folder; it is only read here."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import orjson

from tinkerwire_base.errors import TinkerError

from .secret import Secret, is_sendable

FILE = Path(".tinker", "credentials.json")
"""Its place in the home folder."""
VERSION = 1
OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""What other users of the machine must not be allowed."""


def credentials_file() -> Path:
    """Where the file is, whether or not there is one."""
    return Path.home() / FILE


def stored_key() -> Secret | None:
    """The key that the file names as the default; None without a file, or when it names none.

    Raises:
        TinkerError: the file can be read by others or not by us, or it is not of the known form.
    """
    path = credentials_file()
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & OTHERS:
                raise TinkerError(
                    f"{path}: other users of this machine may use it (mode {mode:04o}), and it holds API keys; "
                    f"say chmod 600 {path}, or set TINKER_API_KEY"
                )
            found = _default_key(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise TinkerError(f"{path}: it cannot be read ({fault.strerror}); or set TINKER_API_KEY") from None
    if isinstance(found, str):
        raise TinkerError(f"{path}: {found}; mend or remove it, or set TINKER_API_KEY")
    return found


def _default_key(content: bytes) -> Secret | str | None:
    """The key, or what is wrong. It does not raise, so that no traceback has a frame with the keys in it."""
    try:
        stored: Any = orjson.loads(content)
    except orjson.JSONDecodeError:
        return "it is not JSON"
    if not isinstance(stored, dict) or stored.get("version", VERSION) != VERSION:
        return f"it is not of version {VERSION}, the only one that is known"
    name, keys = stored.get("default"), stored.get("keys") or {}
    if name is None:
        return None
    record = keys.get(name) if isinstance(keys, dict) and isinstance(name, str) else None
    value = record.get("key") if isinstance(record, dict) else None
    if not isinstance(value, str) or not is_sendable(value):
        return "its default is not one of its keys, or that one is no API key"
    return Secret(value)
