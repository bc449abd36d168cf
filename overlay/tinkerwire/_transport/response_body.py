"""The body of a response, unpacked piece by piece and no further than its limit."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator

from tinkerwire_base.call import WireRequest
from tinkerwire_base.errors import APIError, RequestInfo, ResponseTooLargeError

ACCEPTED = "gzip, deflate"
"""Content encodings that this module can unpack within a limit; others are not asked for."""
PIECE_BYTES = 256 * 1024
"""The most that is unpacked at once."""
MAX_LAYERS = 2
"""Maximum number of content encodings of one body."""


async def read_body(
    request: WireRequest, url: str, status: int, encoding: str, length: int | None, chunks: AsyncIterator[bytes]
) -> bytes:
    """Read and unpack the body of a response.

    Args:
        encoding: the Content-Encoding header.
        length: the Content-Length, where there is one.
        chunks: the body as it arrives.

    Raises:
        ResponseTooLargeError: the body is larger than the limits of the request allow; the rest is not read.
        APIError: its encoding is not one that was accepted.
        zlib.error: it cannot be unpacked, or ends too early.
    """
    limit = request.limits.of(status)
    layers = [name.strip().lower() for name in encoding.split(",")]
    layers = [name for name in layers if name not in ("", "identity")]
    if len(layers) > MAX_LAYERS or any(name not in ("gzip", "x-gzip", "deflate") for name in layers):
        raise APIError(
            f"{request.method} {url}: HTTP {status}: the body has the content encoding {encoding[:100]!r}; "
            f"accepted are {ACCEPTED}",
            RequestInfo(method=request.method, url=url),
        )
    if limit is not None and length is not None and length > limit.max_bytes and not layers:
        raise _too_large(request, url, status)
    unpackers = [Unpacker(name) for name in reversed(layers)]
    found: list[bytes] = []
    size = 0
    async for chunk in chunks:
        for piece in _unpacked(unpackers, chunk):
            found.append(piece)
            size += len(piece)
            if limit is not None and size > limit.max_bytes:
                raise _too_large(request, url, status)
            if unpackers:
                # Time limits, and everybody else, have their turn while a large body is unpacked.
                await asyncio.sleep(0)
    for unpacker in unpackers:
        unpacker.finish()
    return b"".join(found)


class Unpacker:
    """Unpacks gzip, of any number of members, or deflate, with and without its zlib header."""

    def __init__(self, encoding: str) -> None:
        self._is_gzip = encoding != "deflate"
        self._stream: zlib._Decompress | None = None
        self._is_over = False
        self._head = b""

    def unpack(self, data: bytes) -> Iterator[bytes]:
        """Yield what comes out of some more data, in pieces of a limited size."""
        data, self._head = self._head + data, b""
        while data and not self._is_over:
            if self._stream is None:
                if len(data) < 2:
                    self._head = data
                    return
                self._stream = self._next_stream(data)
                if self._stream is None:
                    return
            piece = self._stream.decompress(data, PIECE_BYTES)
            data = self._stream.unconsumed_tail
            yield piece
            # Some output may be left inside when all input is taken.
            while len(piece) == PIECE_BYTES and not data and not self._stream.eof:
                piece = self._stream.decompress(b"", PIECE_BYTES)
                data = self._stream.unconsumed_tail
                yield piece
            if self._stream.eof:
                data, self._stream = self._stream.unused_data, None
                self._was_whole = True
                self._is_over = not self._is_gzip

    _was_whole = False

    def _next_stream(self, data: bytes) -> zlib._Decompress | None:
        if self._is_gzip:
            if self._was_whole and not data.startswith(b"\x1f\x8b"):
                self._is_over = True  # padding behind the last member
                return None
            return zlib.decompressobj(16 + zlib.MAX_WBITS)
        has_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)

    def finish(self) -> None:
        """Check that the data was whole. Raises zlib.error if not."""
        if self._stream is not None or (self._head and not self._was_whole):
            raise zlib.error("the body ends before its packed data does")


def _unpacked(unpackers: list[Unpacker], data: bytes) -> Iterator[bytes]:
    if not unpackers:
        yield data
        return
    for piece in unpackers[0].unpack(data):
        yield from _unpacked(unpackers[1:], piece)


def check_size(request: WireRequest, url: str, status: int, content: bytes) -> None:
    """Check a body that something else has read. Raises ResponseTooLargeError."""
    limit = request.limits.of(status)
    if limit is not None and len(content) > limit.max_bytes:
        raise _too_large(request, url, status)


def _too_large(request: WireRequest, url: str, status: int) -> ResponseTooLargeError:
    limit = request.limits.of(status)
    assert limit is not None
    return ResponseTooLargeError(
        f"{request.method} {url}: HTTP {status}: the body has more than {limit.max_bytes} bytes, unpacked; "
        f"{limit.setting} sets this limit",
        RequestInfo(method=request.method, url=url),
        limit_bytes=limit.max_bytes,
        setting=limit.setting,
    )
