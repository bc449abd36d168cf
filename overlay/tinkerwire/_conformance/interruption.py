"""The interruption of a run by SIGINT and SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
SignalHandler: TypeAlias = "Callable[[int, FrameType | None], Any] | int | None"


class Interrupted(Exception):
    """The run was interrupted before its tests began."""


class Interruption:
    """Ends the step of a run that is in progress when a signal comes."""

    def __init__(self) -> None:
        self.count = 0
        """Number of the signals that came."""
        self._step: asyncio.Task[Any] | None = None

    async def run(self, step: Coroutine[Any, Any, T]) -> T | None:
        """Run a step and return its result; None if a signal ended it."""
        before = self.count
        task = asyncio.ensure_future(step)
        self._step = task
        try:
            return await task
        except asyncio.CancelledError:
            if self.count == before:
                raise
            return None
        finally:
            self._step = None

    def interrupt(self) -> None:
        """Cancel the step in progress."""
        self.count += 1
        if self._step is not None:
            self._step.cancel()

    @contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM interrupt; outside the main thread, and on Windows, they keep their handlers."""
        loop = asyncio.get_running_loop()
        replaced: dict[signal.Signals, SignalHandler] = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            earlier = signal.getsignal(number)
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, self.interrupt)
                replaced[number] = earlier
        try:
            yield
        finally:
            for number, handler in replaced.items():
                loop.remove_signal_handler(number)
                if handler is not None:
                    signal.signal(number, handler)
