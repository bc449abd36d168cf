"""The trace file: one line of JSON for each finished operation, of bounded size, one file for each process.

The first process of a path writes to the path itself; others that run at the same time write to ``PATH.1``, ``PATH.2``
and so on. A process that finds the file of an ended one appends to it, so that nothing is lost; every process begins
with a line that describes it.
"""

from __future__ import annotations

import itertools
import os
import platform
import stat
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from .._files import try_lock
from .._futures.fork_lock import ForkLock
from .._futures.logger import log
from .._futures.operation_trace import OperationTrace
from ..version import __version__

TRACE_FORMAT_VERSION = 1
FIRST_BYTES = b'{"tinkerwire_trace":'
"""Every trace file begins with these bytes."""
OPERATION_BYTES = b'\n{"id":'
SIZE_VARIABLE = "TINKERWIRE_TRACE_MAX_BYTES"
DEFAULT_TRACE_BYTES = 100_000_000
MIN_MAX_BYTES = 10_000
OLD_SUFFIX = ".old"
MAX_PROCESSES = 10_000
"""Files of one path."""


class TraceFile:
    """The trace file of this process. Used under the lock of a recorder, or of several that share it.

    Args:
        path: the path that the user gave.
        max_bytes: maximum size of the file and its predecessor together. When the file has half of it, it becomes
            ``PATH.old`` in place of the one before, whose operations are counted as omitted.

    Raises:
        ValueError: the path cannot be written to, or has a file that is not a trace.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._max_file_bytes = max_bytes // 2
        self._process = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._lock = threading.RLock()
        self._omitted = 0
        self._lost = 0
        self._is_torn = False
        self._has_warned = False
        self._given_path = path
        self._descriptor, self._size = -1, 0
        self.path = path
        self._open()

    def write(self, operations: Sequence[OperationTrace], client: int, dropped: int) -> None:
        """Append finished operations; never raise an error.

        Args:
            operations: the operations.
            client: number of the client among those of this process.
            dropped: number of operations that are missing before these.
        """
        lines = [_encode(trace, client) for trace in operations]
        with self._lock:
            self._lost += dropped
            try:
                self._write(lines)
            except (OSError, ValueError) as error:
                if not self._has_warned:
                    self._has_warned = True
                    log.warning("%s: the trace cannot be written; operations will be missing: %s", self.path, error)

    def close(self) -> None:
        """Note the end of the process, or of its last client, and close the file."""
        with self._lock:
            if self._descriptor >= 0:
                with suppress(OSError, ValueError):
                    self._write([])
                    self._write_line({"closed": time.monotonic()})
                os.close(self._descriptor)
                self._descriptor = -1

    def _open(self) -> None:
        self.path, self._descriptor = _claim(self._given_path)
        self._size = os.fstat(self._descriptor).st_size
        self._is_torn = self._size > 0
        self._write_line(self._describe_process())

    def abandon(self) -> None:
        """Leave the file to the parent of a forked process, whose lock ends with its last descriptor."""
        with suppress(OSError):
            os.close(self._descriptor)

    def _write(self, lines: list[bytes]) -> None:
        remaining = len(lines)
        try:
            if self._descriptor < 0:  # the last rotation failed
                self._open()
            if self._lost:
                self._write_line({"lost": self._lost})
                self._lost = 0
            block: list[bytes] = []
            block_bytes = 0
            for line in lines:
                if block and self._size + block_bytes + len(line) > self._max_file_bytes:
                    remaining -= len(block)
                    self._append(b"".join(block), len(block))
                    block, block_bytes = [], 0
                    self._rotate()
                block.append(line)
                block_bytes += len(line)
            if block:
                remaining -= len(block)
                self._append(b"".join(block), len(block))
        except (OSError, ValueError):
            self._lost += remaining
            raise

    def _write_line(self, value: dict[str, Any]) -> None:
        self._append(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))

    def _append(self, data: bytes, operations: int = 0) -> None:
        """Append lines; if that fails, count those of so many operations that are not complete as lost."""
        if self._is_torn:  # what follows half a line must not be lost with it
            data = b"\n" + data
        done = 0
        try:
            while done < len(data):
                done += os.write(self._descriptor, memoryview(data)[done:])
        except OSError:
            # A line without its end is complete, too: the next one begins with it.
            complete = data.count(b"\n", 1, done + 1) if operations else 0
            self._lost += operations - complete
            self._is_torn = True
            raise
        finally:
            self._size += done
        self._is_torn = False

    def _rotate(self) -> None:
        """Continue in a new file; keep the full one in place of the one before it."""
        old = Path(f"{self.path}{OLD_SUFFIX}")
        if old.exists():
            self._omitted += old.read_bytes().count(OPERATION_BYTES)
            if not self._has_warned:
                self._has_warned = True
                log.warning(
                    "%s: the trace has reached its maximum size; its oldest operations are omitted, and counted in it. "
                    "Set %s to keep more",
                    self.path,
                    SIZE_VARIABLE,
                )
        # Windows replaces only files that are closed.
        os.close(self._descriptor)
        self._descriptor = -1
        self.path.replace(old)
        self._open()

    def _describe_process(self) -> dict[str, Any]:
        return {
            "tinkerwire_trace": TRACE_FORMAT_VERSION,
            "tinkerwire": __version__,
            "python": platform.python_version(),
            "process": self._process,
            "time": time.time(),
            "clock": time.monotonic(),
            "omitted": self._omitted,
        }


def _encode(trace: OperationTrace, client: int) -> bytes:
    value: dict[str, Any] = {
        "id": trace.number,
        "client": client,
        "kind": trace.kind,
        "step": trace.step,
        "asked": trace.asked,
        "events": trace.events,
        "end": trace.end,
        "outcome": trace.outcome,
        "awaited": trace.is_awaited,
        "requests": trace.request_ids,
    }
    for name in OPTIONAL_MEMBERS:
        if found := getattr(trace, name):
            value[name] = found
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


OPTIONAL_MEMBERS = (
    "error",
    "model",
    "model_id",
    "sampler",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "omitted_events",
)
"""Members of a line that are left out while they are empty."""


class FileReceiver:
    """Writes the operations of one client to the trace file of this process.

    Args:
        path: the path that the user gave, or that TINKERWIRE_TRACE has.

    Raises:
        ValueError: the path cannot be written to, or TINKERWIRE_TRACE_MAX_BYTES is not a size.
    """

    capture: Callable[[], object] | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))  # noqa: PTH100  (resolve would follow a link that the user replaces)
        self._file = _open_shared(self.path)
        self._client = next(_client_numbers)

    def receive(self, operations: Sequence[OperationTrace], dropped: int) -> None:
        """Append the operations."""
        self._file.write(operations, self._client, dropped)

    def close(self) -> None:
        """Close the file, unless other clients of this process write to it."""
        _close_shared(self.path, self._file)


_client_numbers = itertools.count(1)
_shared: dict[Path, tuple[TraceFile, int]] = {}
_shared_lock = ForkLock()


def _open_shared(path: Path) -> TraceFile:
    with _shared_lock.current:
        file, users = _shared.get(path, (None, 0))
        if file is None:
            file = TraceFile(path, _read_max_bytes())
        _shared[path] = file, users + 1
        return file


def _close_shared(path: Path, file: TraceFile) -> None:
    with _shared_lock.current:
        shared, users = _shared.get(path, (None, 0))
        if shared is not file:  # a forked child closes the client of its parent
            return
        if users > 1:
            _shared[path] = file, users - 1
            return
        del _shared[path]
        file.close()


def _abandon_shared() -> None:
    for file, _ in _shared.values():
        file.abandon()
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_shared)


def _read_max_bytes() -> int:
    text = os.environ.get(SIZE_VARIABLE, "")
    if not text:
        return DEFAULT_TRACE_BYTES
    try:
        size = int(text)
    except ValueError:
        size = 0
    if size < MIN_MAX_BYTES:
        raise ValueError(f"{SIZE_VARIABLE} must be a number of bytes, at least {MIN_MAX_BYTES:,}, got {text!r}")
    return size


def _claim(path: Path) -> tuple[Path, int]:
    """Open the first file of a path that no other process writes to; return its path and descriptor."""
    for number in range(MAX_PROCESSES):
        candidate = path if number == 0 else Path(f"{path}.{number}")
        descriptor = _open(candidate)
        if try_lock(descriptor):
            return candidate, descriptor
        os.close(descriptor)
    raise ValueError(f"trace: {MAX_PROCESSES} processes write to {str(path)!r}; give another path")


def _open(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o666)
    except (OSError, ValueError) as error:  # ValueError: text that cannot be the name of a file
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"trace: {str(path)!r} cannot be written to ({reason}); give the path of a file in a folder that "
            f"exists and that you may write to, in trace= or in TINKERWIRE_TRACE"
        ) from None
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    if is_file and os.read(descriptor, len(FIRST_BYTES)) in (b"", FIRST_BYTES):
        return descriptor
    os.close(descriptor)
    raise ValueError(f"trace: {str(path)!r} exists and is not a trace of tinkerwire; give another path")
