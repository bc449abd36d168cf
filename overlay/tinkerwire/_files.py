"""Files that are replaced atomically, and folders that one process at a time may change."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".writing-"
"""Prefix of the names of unfinished files."""
LOCK_FILE = ".tinkerwire-lock"
"""Name of the file in a folder that a process locks."""


def lock(folder: Path, *, waits: bool) -> Callable[[], None]:
    """Lock a folder exclusively; return the function that unlocks it. The lock also ends with the process.

    A read-only folder, or one on a file system without locks, stays unlocked: users must not share it.

    Raises:
        BlockingIOError: the folder is locked, and ``waits`` is False.
        OSError: the folder cannot be read.
    """
    # Most programs never lock a folder, and this import takes 50 ms.
    from filelock import FileLock, Timeout  # noqa: PLC0415

    # A server can be closed on any thread. Each user of the folder must be able to lock the file of another user.
    file_lock = FileLock(folder / LOCK_FILE, mode=0o666, blocking=waits, thread_local=False, fallback_to_soft=False)
    try:
        file_lock.acquire()
    except Timeout:
        raise BlockingIOError(f"{folder} is locked") from None
    except (OSError, NotImplementedError):
        os.scandir(folder).close()
    return file_lock.release


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Create a file, hold its lock, and remove the file; the lock also ends with the process.

    Raises:
        BlockingIOError: the file is locked elsewhere.
        OSError: the file cannot be created.
    """
    descriptor = _open_locked(path)
    try:
        yield
    finally:
        # Removed under the lock, so that no other owner loses the file; Windows keeps it, because it is open.
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _open_locked(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not try_lock(descriptor):
            os.close(descriptor)
            raise BlockingIOError(f"{path} is locked")
        # The previous owner may have removed the file after it was opened here.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` once it is written and synced; only the owner can read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    # Some systems cannot sync the new name.
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


if sys.platform == "win32":
    import msvcrt

    LOCKED_BYTE = 2**62

    def try_lock(descriptor: int) -> bool:
        """Lock a file until its descriptor is closed; return False if it is locked elsewhere."""
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Lock a file until its descriptor is closed; return False if it is locked elsewhere."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True
