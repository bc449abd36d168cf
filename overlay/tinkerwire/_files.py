"""A folder that one process at a time may change. Not on Windows, nor where the file system has no locks."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


def lock(folder: Path, *, waits: bool) -> Callable[[], None]:
    """Lock a folder exclusively; return the function that unlocks it. The lock also ends with the process.

    Raises:
        BlockingIOError: the folder is locked, and ``waits`` is False.
        OSError: the folder does not exist or cannot be read.
    """
    locks = fcntl
    if locks is None:
        return lambda: None
    handle = os.open(folder, os.O_RDONLY)
    try:
        locks.flock(handle, locks.LOCK_EX if waits else locks.LOCK_EX | locks.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:
        # On a file system without locks, users must not share a folder.
        pass

    def unlock() -> None:
        # Not by closing alone, as a forked child may have the handle, too.
        with suppress(OSError):
            locks.flock(handle, locks.LOCK_UN)
        os.close(handle)

    return unlock
