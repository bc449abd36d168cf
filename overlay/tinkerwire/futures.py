"""The future that every operation returns."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from .loop import LOOP

T = TypeVar("T")


class APIFuture(Generic[T]):
    """The result of an operation that runs already: awaitable on any event loop, usable from any thread.

    The result, or the error, is kept: asking again gives the same object.
    """

    def __init__(self, future: concurrent.futures.Future[T]) -> None:
        self._future = future

    @classmethod
    def start(cls, work: Coroutine[Any, Any, T]) -> APIFuture[T]:
        """Run a coroutine on the loop thread now."""
        return cls(LOOP.start(work))

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, at most ``timeout`` seconds.

        Raises:
            TimeoutError: it is not there in time; the operation goes on.
            TinkerError: the operation failed.
        """
        if LOOP.is_current_thread and not self._future.done():
            raise RuntimeError("result() would block the client's own loop thread; await the future instead")
        try:
            return self._future.result(timeout)
        except concurrent.futures.TimeoutError:
            if self._future.done():
                raise
            raise TimeoutError(f"no result within {timeout:g} s; the operation goes on") from None

    async def result_async(self, timeout: float | None = None) -> T:
        """:meth:`result` for coroutines. A time-out leaves the operation running; being cancelled cancels it."""
        wrapped = asyncio.wrap_future(self._future)
        if timeout is None:
            return await wrapped
        try:
            return await asyncio.wait_for(asyncio.shield(wrapped), timeout)
        except asyncio.TimeoutError:
            if wrapped.done():
                return wrapped.result()
            raise TimeoutError(f"no result within {timeout:g} s; the operation goes on") from None
        except asyncio.CancelledError:
            self._future.cancel()
            raise

    def __await__(self) -> Generator[Any, None, T]:
        return self.result_async().__await__()

    async def coroutine(self) -> T:
        """This future as a coroutine, for ``asyncio.create_task`` and the like."""
        return await self.result_async()

    def future(self) -> concurrent.futures.Future[T]:
        """The ``concurrent.futures.Future`` underneath."""
        return self._future

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._future.done()

    def cancel(self) -> bool:
        """Stop waiting for it; an operation that was not sent yet is never sent. False when it is done."""
        return self._future.cancel()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error of the operation, or None; waits like :meth:`result`."""
        return self._future.exception(timeout)
