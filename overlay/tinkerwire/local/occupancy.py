"""One server at a time in a folder: a second would take for leftovers what the first is writing."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


def occupy(folder: Path) -> Callable[[], None]:
    """Take a folder, and make it if need be, until what is returned is called or the process ends.

    Raises:
        ValueError: another server has it.
        OSError: it cannot be made or read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    locks = fcntl
    if locks is None:
        return lambda: None
    handle = os.open(folder, os.O_RDONLY)
    try:
        locks.flock(handle, locks.LOCK_EX | locks.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise ValueError(f"folder: another server has {folder}; give each of them a folder of its own") from None
    except OSError:
        # A file system without locks. Whoever has two servers there has to know.
        os.close(handle)
        return lambda: None

    def leave() -> None:
        with suppress(OSError):
            # Not by closing alone, as a forked child may have the handle, too.
            locks.flock(handle, locks.LOCK_UN)
            os.close(handle)

    return leave
