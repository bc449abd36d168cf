"""The future that every operation returns."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Generator
from typing import Any, Generic, TypeVar

from tinkerwire_base.errors import CancelledSubmissionError

from .loop import LOOP

T = TypeVar("T")


class APIFuture(Generic[T]):
    """The result of an operation that runs already: awaitable on any event loop, usable from any thread.

    The result, or the error, is kept: asking again gives the same object.
    """

    def __init__(self, future: concurrent.futures.Future[T]) -> None:
        self._future = future

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, at most ``timeout`` seconds.

        Raises:
            TimeoutError: it is not there in time; the operation goes on.
            CancelledSubmissionError: it was cancelled.
            TinkerError: the operation failed.
        """
        self._wait(timeout)
        return self._outcome()

    async def result_async(self, timeout: float | None = None) -> T:
        """:meth:`result` for coroutines. A time-out leaves the operation running; being cancelled cancels it."""
        try:
            return await self.watch(timeout)
        except asyncio.CancelledError:
            self._future.cancel()
            raise

    async def watch(self, timeout: float | None = None) -> T:
        """:meth:`result` for coroutines that only look on: being cancelled leaves the operation running, too."""
        if not self._future.done():
            try:
                await asyncio.wait_for(self._end(), timeout)
            except asyncio.TimeoutError:
                self._check_end(timeout)
        return self._outcome()

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
        self._wait(timeout)
        if self._future.cancelled():
            return _cancelled()
        return self._future.exception()

    def _wait(self, timeout: float | None) -> None:
        if LOOP.is_current_thread and not self._future.done():
            raise RuntimeError("this would block the client's own loop thread; await the future instead")
        try:
            self._future.exception(timeout)
        except concurrent.futures.CancelledError:
            return
        except concurrent.futures.TimeoutError:
            self._check_end(timeout)

    async def _end(self) -> None:
        loop = asyncio.get_running_loop()
        end = asyncio.Event()

        def tell(_: object) -> None:
            try:
                loop.call_soon_threadsafe(end.set)
            except RuntimeError:  # the loop that waited is closed by now
                return

        self._future.add_done_callback(tell)
        await end.wait()

    def _check_end(self, timeout: float | None) -> None:
        if not self._future.done():
            raise TimeoutError(f"no result within {timeout:g} s; the operation goes on") from None

    def _outcome(self) -> T:
        if self._future.cancelled():
            raise _cancelled()
        return self._future.result()


AwaitableConcurrentFuture = APIFuture
"""The official name of a future around one of ``concurrent.futures``, which code makes for its tests."""


def _cancelled() -> CancelledSubmissionError:
    return CancelledSubmissionError(
        "the operation was cancelled; if its request had been sent by then, the server still runs it"
    )
