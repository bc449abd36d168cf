"""The border between the user's threads and the one event loop on which all requests run."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop on a daemon thread: started for the first user, stopped after the last.

    Coroutines start in the order in which they are handed over, whichever thread they come from.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def acquire(self) -> None:
        """Count one user more, and start the thread for the first."""
        with self._lock:
            if self._pid != os.getpid():
                # A forked child has the parent's counters, but not its thread.
                self._pid, self._users, self._loop = os.getpid(), 0, None
            self._users += 1
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name="tinkerwire-loop", daemon=True
                )
                self._thread.start()

    def release(self) -> None:
        """Count one user less, and stop the thread after the last."""
        with self._lock:
            self._users -= 1
            if self._users > 0 or self._loop is None or self._pid != os.getpid():
                return
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    @property
    def is_current_thread(self) -> bool:
        """Whether the caller runs on the loop's thread, where it must not block."""
        return threading.current_thread() is self._thread

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the loop; cancelling the future cancels it."""
        loop = self._loop
        if loop is None or self._pid != os.getpid():
            work.close()
            raise RuntimeError("the client was closed, or it was made before a fork; make a new one here")
        return asyncio.run_coroutine_threadsafe(work, loop)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


LOOP = LoopThread()
"""The process's loop."""
