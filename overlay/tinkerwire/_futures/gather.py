"""Waiting for many futures: all results in order, or each as it completes, with a progress bar."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from .deadline import normalize_timeout
from .event_loop import LOOP
from .future import APIFuture
from .operation_record import OperationRecord
from .progress import create_progress
from .timeout import wait_for

T = TypeVar("T")


def gather(
    futures: Iterable[APIFuture[T]],
    *,
    return_exceptions: bool = False,
    description: str = "",
    progress: bool | None = None,
) -> APIFuture[list[T]]:
    """Return a future of all results in the order of the futures: ``gather(futures).result()``, or ``await`` it.

    The first failure fails it at once, and the other operations continue; cancelling it cancels all operations.

    Args:
        futures: futures to wait for.
        return_exceptions: return errors in place of results, and never fail.
        description: label of the progress bar.
        progress: whether to show a progress bar; None: if standard error is a terminal, and in notebooks.

    Raises:
        TypeError: an item is not an APIFuture.
    """
    members = _check_futures("gather", futures)
    future: concurrent.futures.Future[list[T]] = concurrent.futures.Future()
    record = OperationRecord("gather")
    record.total = len(members)
    bar = create_progress(len(members), description, progress)
    # Each done future removes one entry; unlike a subtraction, list.pop is atomic.
    pending = [None] * len(members)

    def end(_: object) -> None:
        record.mark_ended()
        if future.cancelled():
            for member in members:
                member.cancel()
        bar.close()

    def count(member: APIFuture[T]) -> None:
        record.done += 1
        bar.update()
        # Only an error that reaches the caller counts as retrieved.
        if not return_exceptions and member.state != "done" and not future.done():
            error = member.exception()
            _settle(future, lambda: future.set_exception(error))
        pending.pop()
        if not pending:
            finish()

    def finish() -> None:
        if not future.done():
            # Errors replace results only with return_exceptions.
            results: list[Any] = [member.exception() or member.result() for member in members]
            _settle(future, lambda: future.set_result(results))

    future.add_done_callback(end)
    for member in members:
        member.call_when_done(count)
    if not members:
        finish()
    return APIFuture(future, record)


def as_completed(
    futures: Iterable[APIFuture[T]],
    *,
    timeout: float | None = None,
    description: str = "",
    progress: bool | None = None,
) -> CompletedFutures[T]:
    """Return the futures themselves, each when it is done or has failed: for ``for`` and for ``async for``.

    ``timeout`` is in seconds for all futures; TimeoutError after it. Other arguments and errors are those of
    :func:`gather`.
    """
    return CompletedFutures(_check_futures("as_completed", futures), normalize_timeout(timeout), description, progress)


class CompletedFutures(Generic[T]):
    """Iterable that :func:`as_completed` returns; each loop over it visits all futures."""

    def __init__(
        self, futures: list[APIFuture[T]], timeout: float | None, description: str, progress: bool | None
    ) -> None:
        self._futures = futures
        self._timeout = timeout
        self._description = description
        self._progress = progress

    def __iter__(self) -> Iterator[APIFuture[T]]:
        if LOOP.is_current_thread and not all(future.done() for future in self._futures):
            raise RuntimeError("this would block the client's own loop thread; use async for instead")
        arrived: queue.SimpleQueue[APIFuture[T]] = queue.SimpleQueue()
        end = None if self._timeout is None else time.monotonic() + self._timeout
        bar = create_progress(len(self._futures), self._description, self._progress)
        self._notify(arrived.put)
        try:
            for number in range(len(self._futures)):
                try:
                    future = arrived.get(timeout=None if end is None else max(0.0, end - time.monotonic()))
                except queue.Empty:
                    raise self._timeout_error(number) from None
                bar.update()
                yield future
        finally:
            bar.close()

    async def __aiter__(self) -> AsyncIterator[APIFuture[T]]:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[APIFuture[T]] = asyncio.Queue()
        end = None if self._timeout is None else loop.time() + self._timeout

        def put(future: APIFuture[T]) -> None:
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, future)
            except RuntimeError:  # the loop that waited is closed by now
                return

        bar = create_progress(len(self._futures), self._description, self._progress)
        self._notify(put)
        try:
            for number in range(len(self._futures)):
                if arrived.empty():
                    # Futures that are done by now arrive, even if no time remains.
                    await asyncio.sleep(0)
                try:
                    remaining = None if end is None else end - loop.time()
                    # Without time, wait_for of Python 3.12 raises before it looks into the queue.
                    future = await wait_for(arrived.get(), remaining) if arrived.empty() else arrived.get_nowait()
                except asyncio.TimeoutError:
                    raise self._timeout_error(number) from None
                bar.update()
                yield future
        finally:
            bar.close()

    def _notify(self, put: Callable[[APIFuture[T]], object]) -> None:
        for future in self._futures:
            future.call_when_done(put)

    def _timeout_error(self, number: int) -> TimeoutError:
        return TimeoutError(
            f"{number} of {len(self._futures)} futures were done within {self._timeout:g} s; the operations continue"
        )


def _check_futures(name: str, futures: Iterable[APIFuture[T]]) -> list[APIFuture[T]]:
    if isinstance(futures, APIFuture):
        raise TypeError(f"{name}: expected a list of futures, got one; put it into a list")
    if not isinstance(futures, Iterable):
        raise TypeError(f"{name}: expected a list of futures, got {type(futures).__name__}")
    checked_futures = list(futures)
    for position, future in enumerate(checked_futures):
        if not isinstance(future, APIFuture):
            raise TypeError(f"{name}: futures[{position}]: expected an APIFuture, got {type(future).__name__}")
    return checked_futures


def _settle(future: concurrent.futures.Future[Any], settle: Callable[[], None]) -> None:
    try:
        settle()
    except concurrent.futures.InvalidStateError:  # the future already has an error, or was cancelled
        return
