"""Tapes: files of exchanges, one JSON object a line, to which several processes may append.

The first line holds the format version. Every line begins with a line break, so that a line that a killed process left
unfinished spoils no other line. Readers skip lines that are not whole.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import orjson

from .._futures.fork_lock import ForkLock
from .._futures.logger import log

TAPE_FORMAT = "tinkerwire_tape"
TAPE_FORMAT_VERSION = 1
RECORD_VARIABLE = "TINKERWIRE_RECORD"
"""The variable that names the tape on which the clients of the process, and of its children, are recorded."""
LIMIT_VARIABLE = "TINKERWIRE_RECORD_MAX_BYTES"
DEFAULT_TAPE_BYTES = 4 * 2**30
"""Size at which recording stops, unless TINKERWIRE_RECORD_MAX_BYTES sets another one."""


@attrs.frozen(kw_only=True)
class RecordedExchange:
    """One attempt of a request, and its response or error; without secrets."""

    at: int
    """Start of the attempt, in nanoseconds of the system's clock; distinct within a process."""
    method: str
    path: str
    query: list[list[str]] = attrs.field(factory=list)
    headers: dict[str, str] = attrs.field(factory=dict)
    content: bytes | None = None
    status: int | None = None
    """Status of the response; None without a response."""
    response_headers: dict[str, str] = attrs.field(factory=dict)
    response: bytes = b""
    error: dict[str, Any] | None = None
    """Kind, message and may_have_been_sent of the error of an attempt without response."""


@attrs.frozen(kw_only=True)
class Recording:
    """Content of a tape."""

    path: Path
    server: str
    """Address of the recorded server; empty if no client was created."""
    exchanges: tuple[RecordedExchange, ...]
    """Exchanges in the order of their starts."""
    torn_lines: int
    """Number of lines that are not whole."""
    is_limited: bool
    """True if recording stopped at the maximum size."""

    @property
    def ending(self) -> str:
        """Clause about what the tape lacks; empty for a whole one."""
        if self.is_limited:
            return f"; the recording stopped at its maximum size, which {LIMIT_VARIABLE} sets"
        if self.torn_lines:
            return "; the recording was cut off, as by a killed process"
        return ""


class TapeWriter:
    """Appends to a tape; used on any thread, and in forked processes too.

    Args:
        path: the file; it is created if necessary, readable by its owner only.

    Raises:
        ValueError: the file cannot be written, or is not a tape of this format.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = ForkLock()
        self._last_at = 0
        self._max_bytes = _read_limit()
        self._is_over = False
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as file:
                _read_version(path, file.readline(1000))
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise ValueError(f"recording: {path} cannot be written: {error.strerror or error}") from None
        if os.fstat(self._file).st_size == 0:
            os.write(self._file, orjson.dumps({TAPE_FORMAT: TAPE_FORMAT_VERSION}))

    @property
    def is_current(self) -> bool:
        """False if the path has another file by now, or none."""
        with self._lock.current, suppress(OSError):
            if self._is_over:
                # Recording stopped at the maximum size or because of an error, if the file is still there.
                return self._path.exists()
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        return False

    def start(self) -> int:
        """Return the time of a new attempt, later than all before it."""
        with self._lock.current:
            self._last_at = max(self._last_at + 1, time.time_ns())
            return self._last_at

    def write_server(self, address: str) -> None:
        """Write the address of a server that a client connects to."""
        self._append({"server": address})

    def write(self, exchange: RecordedExchange) -> None:
        """Write an exchange; after the maximum size, nothing."""
        state = attrs.asdict(exchange, filter=lambda field, value: value != field.default and value is not None)
        for name in ("content", "response"):
            if name in state:
                state[name] = _encode_bytes(state[name])
        self._append(state)

    def close(self) -> None:
        """Close the file."""
        with self._lock.current:
            if not self._is_over:
                self._is_over = True
                os.close(self._file)

    def _append(self, state: Mapping[str, Any]) -> None:
        line = b"\n" + orjson.dumps(state)
        with self._lock.current:
            if self._is_over:
                return
            try:
                if os.fstat(self._file).st_size == 0:  # new, or emptied since
                    line = orjson.dumps({TAPE_FORMAT: TAPE_FORMAT_VERSION}) + line
                if os.fstat(self._file).st_size + len(line) > self._max_bytes:
                    line, self._is_over = b'\n{"limit":true}', True
                    log.warning(
                        "the recording in %s stops at %d bytes; %s sets this limit",
                        self._path,
                        self._max_bytes,
                        LIMIT_VARIABLE,
                    )
                remaining = memoryview(line)
                while remaining:
                    remaining = remaining[os.write(self._file, remaining) :]
            except OSError as error:
                self._is_over = True
                log.warning("the recording in %s stops: %s", self._path, error)
            if self._is_over:
                os.close(self._file)


def read_tape(path: Path) -> Recording:
    """Return the content of a tape, as far as it is whole.

    Raises:
        ValueError: the file cannot be read, or is not a tape of this format.
    """
    try:
        with path.open("rb") as file:
            lines = file.read().split(b"\n")
    except OSError as error:
        raise ValueError(f"replay: {path} cannot be read: {error.strerror or error}") from None
    _read_version(path, lines[0])
    server, exchanges, torn, is_limited = "", [], 0, False
    for line in lines[1:]:
        if not line:
            continue
        try:
            state = orjson.loads(line)
            if "at" in state:
                exchanges.append(_read_exchange(state))
            server = server or state.get("server", "")
            is_limited = is_limited or "limit" in state
        except (ValueError, TypeError, AttributeError):
            torn += 1
    exchanges.sort(key=lambda exchange: exchange.at)
    return Recording(path=path, server=server, exchanges=tuple(exchanges), torn_lines=torn, is_limited=is_limited)


def _read_exchange(state: dict[str, Any]) -> RecordedExchange:
    for name in ("content", "response"):
        if name in state:
            state[name] = _decode_bytes(state[name])
    return RecordedExchange(**state)


def _read_version(path: Path, line: bytes) -> None:
    try:
        version = orjson.loads(line)[TAPE_FORMAT]
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f"{path} is not a recording; `tinkerwire record --to {path.name} -- PROGRAM` makes one"
        ) from None
    if version != TAPE_FORMAT_VERSION:
        raise ValueError(f"{path}: this version reads recordings of format {TAPE_FORMAT_VERSION}, got {version!r:.20}")


def _read_limit() -> int:
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return DEFAULT_TAPE_BYTES
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"{LIMIT_VARIABLE}: expected a number of bytes, got {text!r:.50}")
    return int(text)


def _encode_bytes(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _decode_bytes(state: dict[str, str]) -> bytes:
    return state["text"].encode() if "text" in state else base64.b64decode(state["base64"], validate=True)
