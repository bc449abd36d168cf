"""Downloads to files: resumed after interruptions, verified, and put in place at once."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import attrs
import orjson

from tinkerwire_base.call import ResponseLimits, SizeLimit, WireResponse
from tinkerwire_base.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    RequestInfo,
    ResponseInfo,
    ResponseTooLargeError,
    TinkerError,
    status_error,
)

from .._files import lock_file
from .._futures.logger import log
from .._transport.download import download
from .archives import DOWNLOAD_SILENCE_S, MAX_ERROR_BYTES, SHOWN_ERROR_BYTES

ATTEMPTS = 5
"""Number of attempts in a row without any progress."""
FIRST_PAUSE_S = 1.0
"""Pause before the second attempt; it doubles."""
EXPIRED = frozenset({401, 403, 410})
"""Statuses of a signed URL whose time is over; a new URL continues the download."""
PART = ".part"
STATE = ".part.json"
HASHED_BYTES = 1 << 20


@attrs.define
class _State:
    """Progress of a download that another process can resume.

    Args:
        validator: strong ETag of the content; empty if the server sends none, and the download cannot resume.
        size: size of the whole content in bytes, if the server sends it.
        digests: hashes of the whole content by algorithm, as the server sends them.
    """

    validator: str = ""
    size: int | None = None
    digests: dict[str, bytes] = attrs.field(factory=dict)


@contextmanager
def exclusive_download(target: Path) -> Iterator[None]:
    """Exclude other downloads to a file or folder; raise TinkerError if one is under way."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_file(target.with_name(f".{target.name}.lock")))
        except BlockingIOError:
            raise TinkerError(
                f"another download to {target} is under way; wait for it, or choose another target"
            ) from None
        yield


async def download_file(
    get_url: Callable[[], Awaitable[str]],
    file: Path,
    *,
    max_bytes: int,
    on_progress: Callable[[int], object] | None = None,
    keeps_state: bool = False,
) -> int:
    """Download to a file and return its size in bytes.

    The content is written to ``file`` with the suffix .part, which an interrupted download leaves behind. The next
    download of the same content continues there, if the server supports ranges and ETags. Size and hash are verified
    where the server sends them, and the file then gets its name. No error shows the URL, which may be a secret.

    Args:
        get_url: returns the URL; called again when the URL expires.
        file: the file to write.
        max_bytes: maximum size of the content.
        on_progress: called with the number of bytes after each piece, on the client's thread.
        keeps_state: keep the file with the ETag, so that another download only asks whether the content has changed.

    Raises:
        APIStatusError, APIConnectionError: the download failed.
        TinkerError: the content is too large, or its size or hash is wrong.
        OSError: the file cannot be written.
    """
    part, state_file = file.with_name(file.name + PART), file.with_name(file.name + STATE)
    file.parent.mkdir(parents=True, exist_ok=True)
    state = _read_state(state_file)
    if keeps_state and state.validator:
        _reopen(file, part)
    failures = 0
    url = await get_url()
    with part.open("r+b" if state.validator and part.exists() else "w+b") as stream:
        transfer = _Transfer(stream, state, state_file, max_bytes, on_progress)
        if on_progress and transfer.position:
            on_progress(transfer.position)
        while True:
            before = transfer.position
            try:
                await transfer.run(url)
                break
            except _Interruption as interruption:
                failures = 1 if transfer.position > before else failures + 1
                if failures >= ATTEMPTS:
                    raise interruption.error from None
                if interruption.is_url_expired:
                    url = await get_url()
                    continue
                log.warning("the download continues at byte %d: %s", transfer.position, interruption.error)
                await asyncio.sleep(FIRST_PAUSE_S * 2 ** (failures - 1))
        await asyncio.to_thread(_verify, stream, state, transfer.origin)
    part.replace(file)
    if not keeps_state:
        state_file.unlink(missing_ok=True)
    return transfer.position


class _Interruption(Exception):
    """An error after which the download continues, unless it repeats."""

    def __init__(self, error: APIError, *, is_url_expired: bool = False) -> None:
        super().__init__()
        self.error = error
        self.is_url_expired = is_url_expired


class _Transfer:
    """Requests for the missing rest of one content."""

    def __init__(
        self,
        stream: BinaryIO,
        state: _State,
        state_file: Path,
        max_bytes: int,
        on_progress: Callable[[int], object] | None,
    ) -> None:
        self._stream = stream
        self._state = state
        self._state_file = state_file
        self._max_bytes = max_bytes
        self._on_progress = on_progress
        self.position = stream.seek(0, os.SEEK_END)
        self.origin = ""
        self._has_started = False

    async def run(self, url: str) -> None:
        """Request what is missing and write it; return when the content is complete."""
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.hostname}"
        self._has_started = False
        headers = {}
        if self.position and self._state.validator:
            headers = {"range": f"bytes={self.position}-", "if-range": self._state.validator}
        limits = ResponseLimits(
            result=SizeLimit(max_bytes=self._max_bytes, setting="max_bytes"),
            error=SizeLimit(max_bytes=MAX_ERROR_BYTES, setting="MAX_ERROR_BYTES"),
        )
        try:
            response = await download(url, limits, DOWNLOAD_SILENCE_S, headers=headers, receive=self._receive)
        except ResponseTooLargeError as error:
            raise TinkerError(
                f"the download from {self.origin} has more than {error.limit_bytes} bytes; raise max_bytes"
            ) from None
        except (asyncio.TimeoutError, TimeoutError):
            raise self._interruption(f"no data within {DOWNLOAD_SILENCE_S:g} s", APITimeoutError) from None
        except _ReceiveError as error:
            raise error.error from None
        except (OSError, ValueError) as error:
            raise self._interruption(f"failed: {type(error).__name__}") from None
        if response.status not in (200, 206):
            await self._reject(response)
        elif not self._has_started:
            self._start(response.status, response.headers)
        if self._state.size is not None and self.position < self._state.size:
            raise self._interruption(f"ended after {self.position} of {self._state.size} bytes")

    def _receive(self, status: int, headers: Mapping[str, str], piece: bytes) -> bool:
        try:
            return self._write(status, headers, piece)
        except Exception as error:
            raise _ReceiveError(error) from None

    def _write(self, status: int, headers: Mapping[str, str], piece: bytes) -> bool:
        if status not in (200, 206):
            return False
        if not self._has_started:
            self._start(status, headers)
        self._stream.write(piece)
        self.position += len(piece)
        if self.position > self._max_bytes:
            raise TinkerError(f"the download from {self.origin} has more than {self._max_bytes} bytes; raise max_bytes")
        if self._on_progress:
            self._on_progress(len(piece))
        return True

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        """Prepare the file for the first piece of a response."""
        self._has_started = True
        content_range = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("content-range", ""))
        etag = headers.get("etag", "")
        if status == 206:
            if (
                content_range is None
                or int(content_range[1]) != self.position
                or etag not in ("", self._state.validator)
            ):
                raise TinkerError(
                    f"the download from {self.origin}: the server sent another range than byte {self.position}-"
                )
            if content_range[2] != "*":
                self._state.size = int(content_range[2])
            return
        if self._on_progress and self.position:
            self._on_progress(-self.position)
        self.position = 0
        self._stream.seek(0)
        self._stream.truncate()
        length = headers.get("content-length", "")
        self._state.size = int(length) if length.isdigit() else None
        # A weak ETag does not identify the bytes.
        self._state.validator = etag if etag.startswith('"') else ""
        self._state.digests = _read_digests(headers)
        if self._state.validator:
            content = {
                "validator": self._state.validator,
                "size": self._state.size,
                "digests": {name: value.hex() for name, value in self._state.digests.items()},
            }
            self._state_file.write_bytes(orjson.dumps(content))
        else:
            self._state_file.unlink(missing_ok=True)

    async def _reject(self, response: WireResponse) -> None:
        if response.status == 416:
            # The content is shorter now, or complete already.
            if self._state.size is not None and self.position == self._state.size:
                return
            self._state.validator = ""
            raise self._interruption("the server rejects the range")
        text = response.content[:SHOWN_ERROR_BYTES].decode("utf-8", "replace")
        info = ResponseInfo(status_code=response.status, headers=dict(response.headers), text=text)
        error = status_error(response.status)(f"the download from {self.origin}: HTTP {response.status}", response=info)
        if response.status in EXPIRED:
            raise _Interruption(error, is_url_expired=True)
        if response.status in (429, 500, 502, 503, 504):
            raise _Interruption(error)
        raise error

    def _interruption(
        self, reason: str, error_type: type[APIConnectionError | APITimeoutError] = APIConnectionError
    ) -> _Interruption:
        request = RequestInfo(method="GET", url=f"{self.origin}/...")
        return _Interruption(error_type(request=request, message=f"the download from {self.origin}: {reason}"))


class _ReceiveError(Exception):
    """Carries an error of the file or of the progress function out of the connection, which has errors of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _reopen(file: Path, part: Path) -> None:
    """Make a complete file one that a download continues."""
    if file.exists():
        file.replace(part)


def _read_state(file: Path) -> _State:
    """Return the progress of an earlier download; an unreadable file counts as none."""
    try:
        content = orjson.loads(file.read_bytes())
        digests = {str(name): bytes.fromhex(value) for name, value in content["digests"].items()}
        size = content["size"]
        return _State(str(content["validator"]), size if size is None else int(size), digests)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return _State()


def _read_digests(headers: Mapping[str, str]) -> dict[str, bytes]:
    """Return the hashes of the whole content that a server or an object store sends."""
    texts = [
        (name.lower(), value)
        for name, value in re.findall(r"(?i)(sha-256|sha-512|md5)=:([A-Za-z0-9+/=]+):", headers.get("repr-digest", ""))
    ]
    texts += [("md5", value) for value in re.findall(r"md5=([A-Za-z0-9+/=]+)", headers.get("x-goog-hash", ""))]
    if checksum := re.fullmatch(r"[A-Za-z0-9+/]+=*", headers.get("x-amz-checksum-sha256", "")):
        texts.append(("sha-256", checksum[0]))
    digests = {}
    for name, text in texts:
        try:
            digests[name.replace("-", "")] = base64.b64decode(text, validate=True)
        except ValueError:
            continue
    return digests


def _verify(stream: BinaryIO, state: _State, origin: str) -> None:
    """Compare size and hash with those of the server, and sync the file; truncate a wrong file."""
    stream.flush()
    size = stream.seek(0, os.SEEK_END)
    problem = f"has {size} bytes, expected {state.size}" if state.size not in (None, size) else ""
    for name, expected in state.digests.items():
        digest = hashlib.new(name, usedforsecurity=False)
        stream.seek(0)
        while piece := stream.read(HASHED_BYTES):
            digest.update(piece)
        if digest.digest() != expected:
            problem = problem or f"has the {name} hash {digest.hexdigest()}, expected {expected.hex()}"
    if problem:
        stream.truncate(0)
        raise TinkerError(f"the download from {origin} {problem}; repeat the download")
    os.fsync(stream.fileno())
