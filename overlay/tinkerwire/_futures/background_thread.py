"""Threads that call functions in the background, so that slow or failing ones neither delay nor fail a result."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable

MAX_QUEUED_CALLS = 10_000
"""Calls that wait behind one that is stuck; further ones are dropped."""


class BackgroundThread:
    """Daemon thread that calls functions one after the other, and exists only while calls are pending.

    Errors of the functions are dropped.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()
        _threads.add(self)

    def reset(self) -> None:
        """Drop all calls in a forked child, which has the parent's memory but not its threads."""
        self._lock = threading.RLock()
        self._calls: deque[tuple[Callable[[], object], threading.Event]] = deque()
        self._is_running = False
        self._is_stuck = False

    def call(self, function: Callable[[], object], wait_s: float = 0.0) -> None:
        """Call a function on the thread; wait at most ``wait_s`` seconds, and not behind a stuck function."""
        end = threading.Event()
        with self._lock:
            if len(self._calls) >= MAX_QUEUED_CALLS:
                return
            self._calls.append((function, end))
            is_to_start, self._is_running = not self._is_running, True
        if is_to_start:
            try:
                threading.Thread(target=self._run, name=self.name, daemon=True).start()
            except RuntimeError:  # no more threads, as at the end of the program
                self._run()
        if wait_s and not self._is_stuck and not end.wait(wait_s):
            self._is_stuck = True

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._calls:
                    self._is_running = self._is_stuck = False
                    return
                function, end = self._calls.popleft()
            try:
                function()
            except BaseException:  # this thread has no caller that could receive the error
                pass
            finally:
                end.set()


_threads: weakref.WeakSet[BackgroundThread] = weakref.WeakSet()
LOGGING = BackgroundThread("tinkerwire-logging")
CALLBACKS = BackgroundThread("tinkerwire-callbacks")


def _reset() -> None:
    for thread in _threads:
        thread.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
