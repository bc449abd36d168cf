"""Traffic classes, and the bound on sampling requests in flight that shrinks while the server says 429."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum
from types import TracebackType

from typing_extensions import Self


class Traffic(Enum):
    """Kinds of requests that do not wait for each other: each has connections of its own."""

    SESSION = "session"
    TRAINING = "training"
    TRAINING_FUTURES = "training_futures"
    SAMPLING = "sampling"
    SAMPLING_FUTURES = "sampling_futures"
    REST = "rest"
    TELEMETRY = "telemetry"


CONNECTIONS = {
    Traffic.SESSION: 4,
    Traffic.TRAINING: 16,
    Traffic.TRAINING_FUTURES: 128,
    Traffic.SAMPLING: 64,
    Traffic.SAMPLING_FUTURES: 256,
    Traffic.REST: 16,
    Traffic.TELEMETRY: 2,
}
"""Connections of each class at most; further requests of the class wait for a free one."""


class InFlightLimit:
    """Lets at most ``ceiling`` operations be in flight; halves while the server pushes back, grows again after.

    Used on one event loop. The window falls to half at a push-back, at most once per pause, and gains one
    for every window's worth of operations that went through, up to the ceiling.
    """

    def __init__(self, ceiling: int | None) -> None:
        self.ceiling = float("inf") if ceiling is None else float(ceiling)
        self.window = self.ceiling
        self.in_flight = 0
        self._paused_until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        if self._waiting or not self._is_open():
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            self._wake()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.cancelled():
                    self._waiting = deque(w for w in self._waiting if w is not turn)
                else:
                    self._leave()
                raise
        else:
            self.in_flight += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.window < self.ceiling:
            self.window = min(self.ceiling, self.window + 1 / max(self.window, 1.0))
        self._leave()

    def push_back(self, seconds: float) -> None:
        """The server asked for less: start nothing for ``seconds``, and halve the window."""
        now = asyncio.get_running_loop().time()
        if now >= self._paused_until:
            self.window = max(1.0, min(self.window, float(max(self.in_flight, 1))) / 2)
        self._paused_until = max(self._paused_until, now + seconds)

    def _is_open(self) -> bool:
        return self.in_flight < self.window and asyncio.get_running_loop().time() >= self._paused_until

    def _leave(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and self._is_open():
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
        pause = self._paused_until - loop.time()
        if self._waiting and pause > 0 and (self._timer is None or self._timer.cancelled()):
            self._timer = loop.call_later(pause, self._end_pause)

    def _end_pause(self) -> None:
        self._timer = None
        self._wake()
