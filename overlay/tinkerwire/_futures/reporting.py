"""Background threads for logs, progress bars and callbacks, so that these neither delay nor fail a result."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any

LOG_WAIT_S = 0.25
"""Time that an event loop waits for a log handler, to keep records in order; it does not wait for a stuck one."""
MAX_WAITING = 10_000
"""Calls that wait behind one that is stuck; further ones are dropped."""

if TYPE_CHECKING:
    _LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:
    _LoggerAdapter = logging.LoggerAdapter


class SideThread:
    """Calls functions one after the other on a daemon thread, which exists only while there is something to call.

    Whatever they raise is dropped.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()
        _threads.add(self)

    def reset(self) -> None:
        """Forget everything, as a forked child has to: it has the parent's memory, but not its threads."""
        self._lock = threading.RLock()
        self._calls: deque[tuple[Callable[[], object], threading.Event]] = deque()
        self._is_running = False
        self._is_stuck = False

    def call(self, function: Callable[[], object], wait_s: float = 0.0) -> None:
        """Have a function called; wait for its end at most ``wait_s`` seconds, and not at all behind a stuck one."""
        end = threading.Event()
        with self._lock:
            if len(self._calls) >= MAX_WAITING:
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
            except BaseException:  # there is no caller on this thread to raise it to
                pass
            finally:
                end.set()


_threads: weakref.WeakSet[SideThread] = weakref.WeakSet()
LOGGING = SideThread("tinkerwire-logging")
CALLBACKS = SideThread("tinkerwire-callbacks")


class GuardedLogger(_LoggerAdapter):
    """A logger whose handlers can neither fail nor delay code on an event loop."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a message; see :meth:`logging.Logger.log`."""
        try:
            if not self.isEnabledFor(level):
                return
            record = self._record(level, msg, args, kwargs)
        except Exception:  # a filter or a record factory of the user's
            return
        if is_on_event_loop():
            LOGGING.call(partial(self.logger.handle, record), LOG_WAIT_S)
            return
        try:
            self.logger.handle(record)
        except Exception:
            return

    def _record(
        self, level: int, msg: object, args: tuple[object, ...], options: MutableMapping[str, Any]
    ) -> logging.LogRecord:
        # Here, as the exception, the place and the thread are those of the caller.
        exc_info = options.get("exc_info")
        if isinstance(exc_info, BaseException):
            exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
        elif exc_info and not isinstance(exc_info, tuple):
            exc_info = sys.exc_info()
        logger = self.logger
        path, line, function, stack = logger.findCaller(bool(options.get("stack_info")), 3)
        extra = options.get("extra")
        return logger.makeRecord(
            logger.name,
            level,
            path,
            line,
            msg,
            args,
            exc_info or None,
            function,
            extra,
            stack,
        )


def is_on_event_loop() -> bool:
    """Return whether the caller runs on the thread of an event loop, which must not be blocked."""
    return asyncio._get_running_loop() is not None


def _reset() -> None:
    for thread in _threads:
        thread.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
log = GuardedLogger("tinkerwire")
