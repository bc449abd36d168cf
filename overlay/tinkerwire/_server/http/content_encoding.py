"""Bodies of requests as they were before they were compressed."""

from __future__ import annotations

import zlib
from typing import Any

import zstandard

from tinkerwire._server.http.responses import HttpError

LARGEST_BODY_BYTES = 2**26
"""Of a request, before it was compressed. Its objects take up to forty times that."""
PIECE_BYTES = 4096
ZSTD = "zstd"
EVERYWHERE = ("gzip", "deflate")
"""What any HTTP server may read; clients of no wire version send it."""
ENCODINGS = (ZSTD, *EVERYWHERE)


def too_large() -> HttpError:
    """The 413 for a body of more than :data:`LARGEST_BODY_BYTES`."""
    return HttpError(413, f"the body is more than {LARGEST_BODY_BYTES} bytes; send smaller batches")


def decoded(content: bytes, encoding: str) -> bytes:
    """The body of a request.

    Args:
        content: as it came.
        encoding: one of :data:`ENCODINGS`, or nothing.

    Raises:
        Refusal: 400 for what is not so encoded or breaks off, 413 for what grows beyond :data:`LARGEST_BODY_BYTES`.
    """
    if encoding not in ENCODINGS:
        return content
    is_zstd = encoding == ZSTD
    # 47: zlib finds out by itself whether it is gzip or deflate.
    reader: Any = zstandard.ZstdDecompressor().decompressobj() if is_zstd else zlib.decompressobj(47)
    parts: list[bytes] = []
    size = 0
    try:
        # In small pieces, for a few bytes can stand for very many.
        for start in range(0, len(content), PIECE_BYTES):
            parts.append(reader.decompress(content[start : start + PIECE_BYTES]))
            size += len(parts[-1])
            if size > LARGEST_BODY_BYTES:
                raise too_large()
    except (zstandard.ZstdError, zlib.error, EOFError) as error:
        raise HttpError(400, f"the body is not {encoding}, as Content-Encoding says: {error}") from None
    if not reader.eof:
        raise HttpError(400, f"the body is {encoding} that breaks off; send it again")
    return b"".join(parts)
