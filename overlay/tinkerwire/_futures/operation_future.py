"""Future of ``concurrent.futures`` that takes little memory while no thread waits for it."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any, TypeVar

T = TypeVar("T")


class OperationFuture(concurrent.futures.Future[T]):
    """Future of an operation: thousands may be pending, and few of them have a waiting thread."""

    _done_callbacks: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self._small_condition = self._condition = _SmallCondition()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, as the base class does."""
        self._prepare_wait()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the error, as the base class does."""
        self._prepare_wait()
        return super().exception(timeout)

    def _prepare_wait(self) -> None:
        if not self.done():
            self._small_condition.prepare_wait()

    def _invoke_callbacks(self) -> None:
        super()._invoke_callbacks()  # type: ignore[misc]
        # They refer to this future: without this, only a collection of garbage would free the result.
        self._done_callbacks.clear()


class _SmallCondition(threading.Condition):
    """Condition without waiting threads; a standard one takes a kilobyte, for its queue and references to methods."""

    _waiters: Any = ()

    def __init__(self) -> None:
        # Not that of the base class, which creates them.
        self._lock: Any = threading.RLock()

    def prepare_wait(self) -> None:
        """Become a standard condition, before a thread waits and without the lock.

        A signal handler that interrupts Python code under the lock, and waits, would stop the loop at this future.
        """
        if "_waiters" not in self.__dict__:
            for name, value in vars(threading.Condition(self._lock)).items():
                # In one step: threads that do this at once must have the same queue.
                self.__dict__.setdefault(name, value)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock."""
        return bool(self._lock.acquire(blocking, timeout))

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def _is_owned(self) -> bool:
        return bool(self._lock._is_owned())
