"""Reads and decompresses the body of a response, piece by piece and within its size limit."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator

import attrs

from tinkerwire_base.call import ResponseLimits, SizeLimit, WireRequest, WireResponse
from tinkerwire_base.errors import APIError, RequestInfo, ResponseTooLargeError

ACCEPTED = "gzip, deflate"
"""Content encodings that this module can decompress within a limit; requests accept no others."""
PIECE_BYTES = 256 * 1024
"""Maximum size that is decompressed at once."""
MAX_LAYERS = 2
"""Maximum number of content encodings of one body."""


async def read_body(
    request: WireRequest, url: str, status: int, encoding: str, length: int | None, chunks: AsyncIterator[bytes]
) -> bytes:
    """Read and decompress the body of a response.

    Args:
        request: the request, with its size limits.
        url: the URL, for errors.
        status: the status of the response.
        encoding: the Content-Encoding header.
        length: the Content-Length, if known.
        chunks: the body as it arrives.

    Raises:
        ResponseTooLargeError: the body exceeds the limits of the request; the rest is not read.
        APIError: the content encoding is not among those that the request accepts.
        zlib.error: the body cannot be decompressed, or ends too early.
    """
    limit = request.limits.of(status)
    layers = [name.strip().lower() for name in encoding.split(",")] if encoding else []
    layers = [name for name in layers if name not in ("", "identity")]
    if len(layers) > MAX_LAYERS or any(name not in ("gzip", "x-gzip", "deflate") for name in layers):
        raise APIError(
            f"{request.method} {url}: HTTP {status}: the body has the content encoding {encoding[:100]!r}; "
            f"accepted are {ACCEPTED}",
            RequestInfo(method=request.method, url=url),
        )
    if limit is not None and length is not None and length > limit.max_bytes and not layers:
        raise too_large_error(request, limit, url, status)
    decompressors = [Decompressor(name) for name in reversed(layers)]
    pieces: list[bytes] = []
    size = 0
    async for chunk in chunks:
        for piece in _decompress(decompressors, chunk) if decompressors else (chunk,):
            pieces.append(piece)
            size += len(piece)
            if limit is not None and size > limit.max_bytes:
                raise too_large_error(request, limit, url, status)
            if decompressors:
                # Let time limits and other tasks run while a large body is decompressed.
                await asyncio.sleep(0)
    for decompressor in decompressors:
        decompressor.finish()
    return b"".join(pieces)


async def decompress_response(request: WireRequest, url: str, response: WireResponse) -> WireResponse:
    """Decompress a response that has arrived; see :func:`read_body`."""
    encoding, content = response.headers["content-encoding"], response.content

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), PIECE_BYTES):
            yield content[start : start + PIECE_BYTES]

    decompressed = await read_body(request, url, response.status, encoding, len(content), pieces())
    return attrs.evolve(response, content=decompressed)


class Decompressor:
    """Decompresses gzip, of any number of members, or deflate, with or without the zlib header."""

    def __init__(self, encoding: str) -> None:
        self._is_gzip = encoding != "deflate"
        self._stream: zlib._Decompress | None = None
        self._is_over = False
        self._head = b""

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed form of further data, in pieces of a limited size."""
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
            # Output may remain after all input is consumed.
            while len(piece) == PIECE_BYTES and not data and not self._stream.eof:
                piece = self._stream.decompress(b"", PIECE_BYTES)
                data = self._stream.unconsumed_tail
                yield piece
            if self._stream.eof:
                data, self._stream = self._stream.unused_data, None
                self._was_complete = True
                self._is_over = not self._is_gzip

    _was_complete = False

    def _next_stream(self, data: bytes) -> zlib._Decompress | None:
        if self._is_gzip:
            if self._was_complete and not data.startswith(b"\x1f\x8b"):
                self._is_over = True  # padding after the last member
                return None
            return zlib.decompressobj(16 + zlib.MAX_WBITS)
        has_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)

    def finish(self) -> None:
        """Raise zlib.error if the data are incomplete."""
        if self._stream is not None or (self._head and not self._was_complete):
            raise zlib.error("the body ends before its compressed data")


def _decompress(decompressors: list[Decompressor], data: bytes) -> Iterator[bytes]:
    if not decompressors:
        yield data
        return
    for piece in decompressors[0].decompress(data):
        yield from _decompress(decompressors[1:], piece)


def check_size(request: WireRequest, limits: ResponseLimits, url: str, status: int, content: bytes) -> None:
    """Raise ResponseTooLargeError if a body that the transport has read exceeds the limit."""
    limit = limits.of(status)
    if limit is not None and len(content) > limit.max_bytes:
        raise too_large_error(request, limit, url, status)


def too_large_error(request: WireRequest, limit: SizeLimit, url: str, status: int) -> ResponseTooLargeError:
    """Make the error for a body that exceeds the limit."""
    return ResponseTooLargeError(
        f"{request.method} {url}: HTTP {status}: the body has more than {limit.max_bytes} bytes, decompressed; "
        f"{limit.setting} sets this limit",
        RequestInfo(method=request.method, url=url),
        limit_bytes=limit.max_bytes,
        setting=limit.setting,
    )
