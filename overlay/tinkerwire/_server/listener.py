"""A thread with an event loop of its own that serves requests over HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

LISTENING_S = 60.0
"""Time for which a thread may take to listen or to stop."""
Serve: TypeAlias = Callable[[Callable[[str], None], asyncio.Event], Awaitable[None]]
"""Function that serves: it passes its URL to the first argument, and ends when the second is set."""


class Listener:
    """A thread that serves over HTTP.

    Args:
        serve: see :data:`Serve`.

    Raises:
        RuntimeError: the thread does not listen; its cause is the error.
    """

    def __init__(self, serve: Serve) -> None:
        self.url = ""
        """The URL of the server."""
        self._serve = serve
        self._error: BaseException | None = None
        self._is_ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="tinkerwire-listener", daemon=True)
        self._thread.start()
        self._is_ready.wait(LISTENING_S)
        if not self.url:
            raise RuntimeError("the server does not listen") from self._error

    def close(self) -> None:
        """End the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(LISTENING_S)

    def _run(self) -> None:
        def announce(url: str) -> None:
            self.url = url
            self._is_ready.set()

        async def serve() -> None:
            await self._serve(announce, self._stop)

        try:
            self._loop.run_until_complete(serve())
        except BaseException as error:
            self._error = error
        finally:
            self._loop.close()
            self._is_ready.set()
