"""Decompression of request bodies."""

from __future__ import annotations

import zlib
from typing import Any

import zstandard

from tinkerwire._server.http.responses import HttpError

MAX_BODY_BYTES = 2**26
"""Maximum size of a request body, after decompression. Its Python objects take up to forty times as much."""
CHUNK_BYTES = 4096
ZSTD = "zstd"
STANDARD_ENCODINGS = ("gzip", "deflate")
"""Encodings that any HTTP server may accept; clients of no wire version send them."""
ENCODINGS = (ZSTD, *STANDARD_ENCODINGS)


def body_too_large() -> HttpError:
    """Create the 413 for a body of more than :data:`MAX_BODY_BYTES`."""
    return HttpError(413, f"the body must not exceed {MAX_BODY_BYTES} bytes; send smaller batches")


def decompress(content: bytes, encoding: str) -> bytes:
    """Decompress the body of a request.

    Args:
        content: the body as the client sent it.
        encoding: one of :data:`ENCODINGS`; any other value leaves the body as it is.

    Raises:
        HttpError: 400 for an invalid or truncated body, 413 for a body that exceeds :data:`MAX_BODY_BYTES`.
    """
    if encoding not in ENCODINGS:
        return content
    is_zstd = encoding == ZSTD
    # 47: zlib detects gzip or deflate.
    decompressor: Any = zstandard.ZstdDecompressor().decompressobj() if is_zstd else zlib.decompressobj(47)
    parts: list[bytes] = []
    size = 0
    try:
        # In small chunks, because a few bytes can expand to very many.
        for start in range(0, len(content), CHUNK_BYTES):
            parts.append(decompressor.decompress(content[start : start + CHUNK_BYTES]))
            size += len(parts[-1])
            if size > MAX_BODY_BYTES:
                raise body_too_large()
    except (zstandard.ZstdError, zlib.error, EOFError) as error:
        raise HttpError(400, f"the body must be valid {encoding} data, as in Content-Encoding: {error}") from None
    if not decompressor.eof:
        raise HttpError(400, f"the {encoding} data of the body is truncated; resend the request")
    return b"".join(parts)
