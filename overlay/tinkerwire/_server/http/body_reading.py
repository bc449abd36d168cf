"""Reading of the bytes of a body, within limits of size, memory and time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from aiohttp import StreamReader

from tinkerwire._server.http.content_encoding import MAX_BODY_BYTES, body_too_large
from tinkerwire._server.http.responses import HttpError

if sys.version_info >= (3, 11):
    from asyncio import timeout_at
else:
    # aiohttp requires this package.
    from async_timeout import timeout_at  # pyright: ignore[reportMissingImports]

BODY_GRACE_S = 30.0
"""Time in which a body must arrive, beyond the time for its bytes."""
MIN_BODY_BYTES_PER_S = 10_000
"""Rate at which a body must arrive. A sender of single bytes would hold its connection and memory for days."""


async def receive_body(stream: StreamReader, length: int | None, take: Callable[[int], None]) -> bytes:
    """Return the body of a request as it was sent.

    Args:
        stream: the body as it arrives.
        length: its length, if the request names one.
        take: takes memory for more bytes; HttpError if too little is free.

    Raises:
        HttpError: 413 if the body is too large, 503 if too little memory is free, 408 if the body arrives too slowly.
    """
    if (length or 0) > MAX_BODY_BYTES:
        raise body_too_large()
    received = _Received(take)
    if stream.is_eof():
        # Most bodies arrive together with their headers.
        received.add(stream.read_nowait())
    else:
        await _read_within_time(stream, received)
    return b"".join(received.parts)


class _Received:
    def __init__(self, take: Callable[[int], None]) -> None:
        self._take = take
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        """Keep a part of the body."""
        self._take(len(part))
        self.size += len(part)
        if self.size > MAX_BODY_BYTES:
            raise body_too_large()
        self.parts.append(part)


async def _read_within_time(stream: StreamReader, received: _Received) -> None:
    started = asyncio.get_running_loop().time()
    while True:
        allowed_s = BODY_GRACE_S + received.size / MIN_BODY_BYTES_PER_S
        try:
            async with timeout_at(started + allowed_s):
                part = await stream.readany()
        except asyncio.TimeoutError:
            text = f"the body arrives too slowly: {received.size} bytes in {allowed_s:.0f} s"
            raise HttpError(408, f"{text}; send at least {MIN_BODY_BYTES_PER_S} bytes a second") from None
        if not part:
            return
        received.add(part)
