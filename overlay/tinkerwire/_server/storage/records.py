"""Records of runs and checkpoints as they are read from a folder that others may have changed."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tinkerwire._server.storage.atomic_files import UNFINISHED, read_json

log = logging.getLogger("tinkerwire._server")

LARGEST_RECORD_BYTES = 4 * 2**20
MAX_NAMED = 5
"""Files that one line of the log names."""
Check = Callable[[Any], bool]

UNREADABLE = (ValueError, TypeError, KeyError, OSError, RecursionError)
"""Errors that reading a record can raise."""


def is_text(value: Any) -> bool:
    """Return whether a value is a text that is not empty."""
    return isinstance(value, str) and value != ""


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def is_bool(value: Any) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def is_moment(value: Any) -> bool:
    """Return whether a value is a time in seconds since the epoch that a date can show."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    try:
        datetime.fromtimestamp(value, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return False
    return True


def is_metadata(value: Any) -> bool:
    """Return whether a value holds metadata: a map of texts."""
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def optional(check: Check) -> Check:
    """Make a check that takes None as well."""
    return lambda value: value is None or check(value)


def read_record(path: Path, checks: Mapping[str, Check], optional_fields: Iterable[str] = ()) -> dict[str, Any]:
    """Read a record with these fields and no others.

    Raises:
        ValueError, OSError: the file is not such a record.
    """
    # Reading a pipe would never end, and a large file would fill the memory.
    if not path.is_file():
        raise ValueError("it is not a file")
    if path.stat().st_size > LARGEST_RECORD_BYTES:
        raise ValueError(f"it is larger than {LARGEST_RECORD_BYTES} bytes")
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


def files_in(folder: Path, ending: str) -> list[Path]:
    """Return the entries of a folder whose names have an ending, in order; none where the folder cannot be read."""
    try:
        return sorted(
            path for path in folder.iterdir() if path.suffix == ending and not path.name.startswith(UNFINISHED)
        )
    except OSError:
        return []


def name_unknown(folder: Path, known: Iterable[Path]) -> None:
    """Log the files of a folder that the server does not know, in one line; it leaves them as they are."""
    kept = set(known)
    try:
        unknown = sorted(
            path.name
            for path in folder.iterdir()
            if path not in kept and (path.suffix == ".npz" or path.name.startswith(UNFINISHED))
        )
    except OSError:
        return
    if unknown:
        names = ", ".join(ascii(name)[:200] for name in unknown[:MAX_NAMED])
        more = f" and {len(unknown) - MAX_NAMED} more" if len(unknown) > MAX_NAMED else ""
        log.warning("%s: no record names %s%s; the server leaves such files as they are", folder, names, more)
