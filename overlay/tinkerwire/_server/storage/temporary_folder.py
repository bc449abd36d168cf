"""Temporary folders of servers, removed with the server, with the process, or by a later process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path
from types import FrameType

from tinkerwire._files import lock

FOLDER_PREFIX = "tinkerwire-"
SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a process by default without any cleanup."""
_folders: dict[Path, int] = {}
"""The folders in use, each with the process that created it."""


def create() -> Path:
    """Create a folder for a server of this process, after removing folders of killed processes."""
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
    _folders[folder] = os.getpid()
    _remove_folders_on_signals()
    return folder


def remove(folder: Path) -> None:
    """Remove a folder of :func:`create`."""
    shutil.rmtree(folder, ignore_errors=True)
    _folders.pop(folder, None)


def _remove_folders_on_signals() -> None:
    """Handle signals that would end the process at once, unless the program handles or ignores them."""
    if threading.current_thread() is not threading.main_thread():
        # Python can only set handlers on the main thread; a later process removes the folder.
        return
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    """Remove the folders of this process, then end it as the signal does by default."""
    for folder, pid in list(_folders.items()):
        if pid == os.getpid():
            # Another thread may write a file into the folder while it is being removed.
            for _ in range(3):
                shutil.rmtree(folder, ignore_errors=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _remove_abandoned() -> None:
    """Remove folders of ended processes of this user."""
    if not hasattr(os, "getuid"):
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}[0-9]*-*"):
        with contextlib.suppress(OSError, ValueError):
            pid = int(folder.name.split("-")[1])
            status = folder.lstat()
            if status.st_uid != os.getuid() or folder.is_symlink() or folder in _folders or _is_alive(pid):
                continue
            # The process id alone is not enough: containers may share a folder but not process ids.
            unlock = lock(folder, waits=False)
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                unlock()


def _is_alive(pid: int) -> bool:
    if pid == os.getpid():
        # An ended process had the same id; folders of this process are in _folders.
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
