"""Decompression of request bodies."""

from __future__ import annotations

import zlib

import zstandard

from tinkerwire._server.http.responses import HttpError

MAX_BODY_BYTES = 2**26
"""Maximum size of a request body, after decompression. Its Python objects take up to forty times as much."""
ZSTD_PIECE_BYTES = 1024
"""Size of the pieces of a zstd body: four bytes of it can expand to 128 KiB."""
ZSTD = "zstd"
STANDARD_ENCODINGS = ("gzip", "deflate")
"""Encodings that any HTTP server may accept; clients of no wire version send them."""
ENCODINGS = (ZSTD, *STANDARD_ENCODINGS)


def body_too_large() -> HttpError:
    """Create the 413 for a body of more than :data:`MAX_BODY_BYTES`."""
    return HttpError(413, f"the body must not exceed {MAX_BODY_BYTES} bytes; send smaller batches")


def decompress(content: bytes, encoding: str) -> bytes:
    """Decompress the body of a request; stop at :data:`MAX_BODY_BYTES`.

    Args:
        content: the body as the client sent it.
        encoding: one of :data:`ENCODINGS`; any other value leaves the body as it is.

    Raises:
        HttpError: 400 for an invalid or truncated body, or bytes after its end; 413 for a body that exceeds
            :data:`MAX_BODY_BYTES`.
    """
    if encoding not in ENCODINGS:
        return content
    try:
        decompressed, is_complete, rest = _expand_zstd(content) if encoding == ZSTD else _inflate(content)
    except (zstandard.ZstdError, zlib.error, EOFError) as error:
        raise HttpError(400, f"the body must be valid {encoding} data, as in Content-Encoding: {error}") from None
    if len(decompressed) > MAX_BODY_BYTES:
        raise body_too_large()
    if not is_complete:
        raise HttpError(400, f"the {encoding} data of the body is truncated; resend the request")
    if rest:
        raise HttpError(400, f"the body has {len(rest)} bytes after its {encoding} data; send one {encoding} stream")
    return decompressed


def _inflate(content: bytes) -> tuple[bytes, bool, bytes]:
    """Return the body, whether it is complete, and the bytes after it."""
    # 47: zlib detects gzip or deflate.
    stream = zlib.decompressobj(47)
    return stream.decompress(content, MAX_BODY_BYTES + 1), stream.eof, stream.unused_data


def _expand_zstd(content: bytes) -> tuple[bytes, bool, bytes]:
    """Return the body, whether it is complete, and the bytes after it."""
    if zstandard.frame_content_size(content) > MAX_BODY_BYTES:
        raise body_too_large()
    # The size is optional, and need not be true.
    stream = zstandard.ZstdDecompressor(max_window_size=MAX_BODY_BYTES).decompressobj()
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(content), ZSTD_PIECE_BYTES):
        parts.append(stream.decompress(content[start : start + ZSTD_PIECE_BYTES]))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise body_too_large()
        if stream.eof:
            return b"".join(parts), stream.eof, stream.unused_data + content[start + ZSTD_PIECE_BYTES :]
    return b"".join(parts), False, b""
