"""Traffic classes, and the bound on sampling requests in flight that shrinks while the server says 429."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

import attrs


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


@attrs.frozen(kw_only=True)
class SamplingLoad:
    """How busy the samples of a client, or of all that share its limit, keep the server."""

    in_flight: int
    """Samples that were submitted, or are being so, and have no result yet."""
    waiting: int
    """Samples that wait for a place."""
    window: float
    """How many may be in flight now: less than ``ceiling`` for a while after a push-back."""
    ceiling: float
    """RetryConfig.max_connections; infinity without a bound."""
    push_backs: int
    """How often the server said that it is too busy (429 or 503)."""


class InFlightLimit:
    """Lets at most ``ceiling`` operations be in flight; halves while the server pushes back, grows again after.

    Used on one event loop. An operation is in flight from its submission to its result; of those, only so many
    are being sent as there are connections, so that a pause finds no queue of submissions behind it.
    The window falls to half at a push-back, at most once per pause. It grows by one with every operation that
    went through up to half of what it was, and then by one with every window's worth of them, up to the ceiling.
    """

    def __init__(self, ceiling: int | None, sending: int = CONNECTIONS[Traffic.SAMPLING]) -> None:
        self.ceiling = float("inf") if ceiling is None else float(ceiling)
        self.window = self.ceiling
        self.in_flight = 0
        self.waiting = 0
        self.push_backs = 0
        self._sending = 0
        self._max_sending = sending
        self._steep_below = 0.0
        self._paused_until = 0.0
        self._line: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def load(self) -> SamplingLoad:
        """The counters as they are; may be read on any thread."""
        return SamplingLoad(
            in_flight=self.in_flight,
            waiting=self.waiting,
            window=self.window,
            ceiling=self.ceiling,
            push_backs=self.push_backs,
        )

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Be in flight for the block; call ``sent()`` on what this gives once the server has taken the request."""
        await self._turn()
        slot = Slot(self)
        try:
            yield slot
            if slot.was_sent:
                self._grow()
        finally:
            slot.sent()
            self.in_flight -= 1
            self._wake()

    def push_back(self, seconds: float) -> None:
        """The server asked for less: start nothing for ``seconds``, and halve the window."""
        self.push_backs += 1
        now = asyncio.get_running_loop().time()
        if now >= self._paused_until:
            self._steep_below = self.window / 2
            self.window = max(1.0, min(self.window, float(max(self.in_flight, 1))) / 2)
        self._paused_until = max(self._paused_until, now + seconds)

    def end_of_sending(self) -> None:
        """One request less is being sent."""
        self._sending -= 1
        self._wake()

    async def _turn(self) -> None:
        """Wait for a place in flight."""
        turn = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        self.waiting += 1
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                # It stays in the line, where _wake passes over it.
                self.waiting -= 1
            else:
                self.in_flight -= 1
                self.end_of_sending()
            raise

    def _grow(self) -> None:
        step = 1.0 if self.window < self._steep_below else 1 / self.window
        self.window = min(self.ceiling, self.window + step)

    def _is_open(self) -> bool:
        is_paused = asyncio.get_running_loop().time() < self._paused_until
        return self.in_flight < self.window and self._sending < self._max_sending and not is_paused

    def _wake(self) -> None:
        while self._line and self._is_open():
            turn = self._line.popleft()
            if not turn.done():
                self.waiting -= 1
                self.in_flight += 1
                self._sending += 1
                turn.set_result(None)
        pause = self._paused_until - asyncio.get_running_loop().time()
        if self._line and pause > 0 and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(pause, self._end_pause)

    def _end_pause(self) -> None:
        self._timer = None
        self._wake()


class Slot:
    """One operation's place in flight."""

    def __init__(self, limit: InFlightLimit) -> None:
        self._limit = limit
        self.was_sent = False

    def sent(self) -> None:
        """The request has left; another may be sent."""
        if not self.was_sent:
            self.was_sent = True
            self._limit.end_of_sending()
