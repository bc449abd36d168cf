"""Reading of large bodies off the event loop, so that a server answers other requests meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tinkerwire_base.call import WireRequest

T = TypeVar("T")
LARGE_BODY_BYTES = 2**20
"""Size from which a body is read on the thread: reading it takes longer than the change of threads."""


class BodyThread:
    """A thread that reads large bodies, one after the other, so that the objects of one take memory at a time."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, request: WireRequest, work: Callable[[], T]) -> T:
        """Return the result of work on the body of a request: on the thread if it is large, and else at once.

        A compressed body counts as large.
        """
        if len(request.content or b"") < LARGE_BODY_BYTES and "content-encoding" not in request.headers:
            return work()
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "tinkerwire-bodies")
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """End the thread once it has no work."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None
