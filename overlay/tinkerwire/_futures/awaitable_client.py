"""Clients that can be used before the server has made what they stand for, and waited for like futures."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Generator

from typing_extensions import Self

from .future import APIFuture


class AwaitableClient:
    """A client that is the future of its own creation, too: awaiting it gives the client itself."""

    _creation: APIFuture[str]
    """The id of what is made for it."""

    def __await__(self) -> Generator[None, None, Self]:
        return self.result_async().__await__()

    def result(self, timeout: float | None = None) -> Self:
        """Wait until it is created, at most ``timeout`` seconds; the client itself. Raises what that met."""
        self._creation.result(timeout)
        return self

    async def result_async(self, timeout: float | None = None) -> Self:
        """:meth:`result` for coroutines."""
        await self._creation.result_async(timeout)
        return self

    async def coroutine(self) -> Self:
        """This client as a coroutine, for ``asyncio.create_task`` and the like."""
        return await self.result_async()

    def future(self) -> concurrent.futures.Future[Self]:
        """A ``concurrent.futures.Future`` of the client, not to be cancelled; who takes it answers for its error."""
        found: concurrent.futures.Future[Self] = concurrent.futures.Future()
        found.set_running_or_notify_cancel()

        def end(creation: APIFuture[str]) -> None:
            error = creation.exception()
            if error is None:
                found.set_result(self)
            else:
                found.set_exception(error)

        self._creation.call_when_done(end)
        return found
