"""Clients that are usable before the server has created their object, and awaitable like futures."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Generator

from typing_extensions import Self

from .future import APIFuture


class AwaitableClient:
    """Client that is the future of its own creation: awaiting it returns the client itself."""

    _creation: APIFuture[str]
    """The id of what is made for it."""

    def __await__(self) -> Generator[None, None, Self]:
        return self.result_async().__await__()

    def result(self, timeout: float | None = None) -> Self:
        """Wait at most ``timeout`` seconds for the client and return it; raise the error of its creation."""
        self._creation.result(timeout)
        return self

    async def result_async(self, timeout: float | None = None) -> Self:
        """Wait like :meth:`result`, in a coroutine."""
        await self._creation.result_async(timeout)
        return self

    async def coroutine(self) -> Self:
        """Return the client's creation as a coroutine, for ``asyncio.create_task`` and similar functions."""
        return await self.result_async()

    def future(self) -> concurrent.futures.Future[Self]:
        """Return a ``concurrent.futures.Future`` of the client; cancelling it has no effect."""
        future: concurrent.futures.Future[Self] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()

        def end(creation: APIFuture[str]) -> None:
            error = creation.exception()
            if error is None:
                future.set_result(self)
            else:
                future.set_exception(error)

        self._creation.call_when_done(end)
        return future
