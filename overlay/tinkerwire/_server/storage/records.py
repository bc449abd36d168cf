"""Records of runs and checkpoints, read from a folder that other programs may have changed."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tinkerwire._files import UNFINISHED
from tinkerwire._server.storage.atomic_files import read_json

log = logging.getLogger("tinkerwire._server")

MAX_RECORD_BYTES = 4 * 2**20
MAX_LOGGED_NAMES = 5
"""Maximum number of file names in a log line."""
RecordCheck = Callable[[Any], bool]

UNREADABLE = (ValueError, TypeError, KeyError, OSError, RecursionError)
"""Errors that reading a record can raise."""


def is_nonempty_string(value: Any) -> bool:
    """Return whether a value is a string that is not empty."""
    return isinstance(value, str) and value != ""


def is_int64(value: Any) -> bool:
    """Return whether a value is an integer of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def is_bool(value: Any) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def is_timestamp(value: Any) -> bool:
    """Return whether a value is a time in seconds since the epoch that datetime can represent."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    try:
        datetime.fromtimestamp(value, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return False
    return True


def is_metadata(value: Any) -> bool:
    """Return whether a value is metadata: an object of strings."""
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def optional(check: RecordCheck) -> RecordCheck:
    """Return a check that also accepts None."""
    return lambda value: value is None or check(value)


def read_record(path: Path, checks: Mapping[str, RecordCheck], optional_fields: Iterable[str] = ()) -> dict[str, Any]:
    """Read a record with the given fields and no others.

    Args:
        path: path of the record.
        checks: a check for the value of each field.
        optional_fields: fields that may be absent.

    Raises:
        ValueError, OSError: the file is not such a record.
    """
    # A pipe would block forever, and a large file would fill the memory.
    if not path.is_file():
        raise ValueError("not a file")
    if path.stat().st_size > MAX_RECORD_BYTES:
        raise ValueError(f"must not exceed {MAX_RECORD_BYTES} bytes")
    record = read_json(path)
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, got {type(record).__name__}")
    missing = set(checks) - set(record) - set(optional_fields)
    unknown = set(record) - set(checks)
    if missing or unknown:
        raise ValueError(f"missing fields: {sorted(missing)[:5]}; unknown fields: {sorted(unknown)[:5]}")
    for name, value in record.items():
        if not checks[name](value):
            raise ValueError(f"{name} has an unexpected value: {ascii(value)[:100]}")
    return record


def files_in(folder: Path, suffix: str) -> list[Path]:
    """Return the sorted files of a folder with an extension; an empty list if the folder cannot be read."""
    try:
        return sorted(
            path for path in folder.iterdir() if path.suffix == suffix and not path.name.startswith(UNFINISHED)
        )
    except OSError:
        return []


def log_unknown_files(folder: Path, paths: Iterable[Path]) -> None:
    """Log the files of a folder that no record refers to, in one line; the files stay unchanged."""
    known_paths = set(paths)
    try:
        unknown = sorted(
            path.name
            for path in folder.iterdir()
            if path not in known_paths and (path.suffix == ".npz" or path.name.startswith(UNFINISHED))
        )
    except OSError:
        return
    if unknown:
        names = ", ".join(ascii(name)[:200] for name in unknown[:MAX_LOGGED_NAMES])
        more = f" and {len(unknown) - MAX_LOGGED_NAMES} more" if len(unknown) > MAX_LOGGED_NAMES else ""
        log.warning("%s: no record refers to %s%s; the server does not change these files", folder, names, more)
