"""Traffic classes, and the limit of sampling requests in flight, which shrinks while the server responds with 429."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum

import attrs

from .poll_connections import PollConnections, PollLimit, find_poll_limit


class Traffic(Enum):
    """Kinds of requests; each has separate connections, so that they do not wait for each other."""

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
    Traffic.SAMPLING: 64,
    Traffic.REST: 16,
    Traffic.TELEMETRY: 2,
}
"""Maximum connections of each class; further requests of the class wait for a free connection.

Polls have as many connections as the machine allows, see :func:`count_connections`.
"""
TRAINING_SHARE = 4
"""One in so many connections for polls is for results of training; the others are for samples."""


def count_connections(files_per_poll: int = 1) -> tuple[PollLimit, dict[Traffic, int]]:
    """Return the limit of connections for polls of samples, and the maximum connections of all classes."""
    polls = find_poll_limit(sum(CONNECTIONS.values()), files_per_poll)
    training = polls.number // TRAINING_SHARE
    samples = attrs.evolve(polls, number=polls.number - training)
    return samples, CONNECTIONS | {Traffic.TRAINING_FUTURES: training, Traffic.SAMPLING_FUTURES: samples.number}


@attrs.frozen(kw_only=True)
class SamplingLoad:
    """Load of a sampling client, or of all clients that share its limit."""

    in_flight: int
    """Samples that are submitted or being submitted, and have no result yet."""
    waiting: int
    """Samples that wait for a slot."""
    window: float
    """Current limit of samples in flight: less than ``ceiling`` for a while after a push-back."""
    ceiling: float
    """RetryConfig.max_connections; infinity without a limit."""
    push_backs: int
    """Number of push-backs: responses 429 or 503."""


class InFlightLimit:
    """Limits the operations in flight to a window that halves when the server pushes back and grows again later.

    Used on one event loop. An operation is in flight from its submission to its result. At most as many operations
    are being submitted as there are connections, so that a pause finds no queue of submissions.

    The window halves at a push-back, at most once per pause. Up to half its former size it grows by one with every
    completed operation; beyond that, by one with every window of completed operations, up to the ceiling.
    """

    def __init__(self, ceiling: int | None, sending: int = CONNECTIONS[Traffic.SAMPLING]) -> None:
        self.ceiling = float("inf") if ceiling is None else float(ceiling)
        self.window = self.ceiling
        self.in_flight = 0
        self.waiting = 0
        self.push_backs = 0
        self._sending = 0
        self._max_sending = sending
        self._fast_growth_below = 0.0
        self._paused_until = 0.0
        self._queue: deque[tuple[asyncio.Future[None], PollConnections | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def load(self) -> SamplingLoad:
        """The current counters; may be read on any thread."""
        return SamplingLoad(
            in_flight=self.in_flight,
            waiting=self.waiting,
            window=self.window,
            ceiling=self.ceiling,
            push_backs=self.push_backs,
        )

    def slot(self, polls: PollConnections | None = None) -> Slot:
        """Return a slot in flight, to be held with ``async with``.

        Args:
            polls: the connections of which one is reserved for the polls of the operation; None if it needs none.
        """
        return Slot(self, polls)

    def push_back(self, seconds: float) -> None:
        """Start nothing for ``seconds``, and halve the window: the server is too busy."""
        self.push_backs += 1
        now = asyncio.get_running_loop().time()
        if now >= self._paused_until:
            self._fast_growth_below = self.window / 2
            self.window = max(1.0, min(self.window, float(max(self.in_flight, 1))) / 2)
        self._paused_until = max(self._paused_until, now + seconds)

    def release_sending(self) -> None:
        """Count one request less among those that are being sent."""
        self._sending -= 1
        self.wake()

    async def acquire(self, polls: PollConnections | None) -> None:
        """Wait for a slot."""
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((turn, polls))
        self.waiting += 1
        self.wake()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                # It stays in the queue, where ``wake`` skips it.
                self.waiting -= 1
            else:
                self.release_sending()
                self.leave(polls)
            raise

    def leave(self, polls: PollConnections | None) -> None:
        """Give up a slot, and the connection that is reserved for it."""
        self.in_flight -= 1
        if polls is not None:
            polls.release()
        self.wake()

    def grow(self) -> None:
        """Widen the window after a completed operation."""
        step = 1.0 if self.window < self._fast_growth_below else 1 / self.window
        self.window = min(self.ceiling, self.window + step)

    def _is_open(self) -> bool:
        return self.in_flight < self.window and self._sending < self._max_sending and not self._is_paused()

    def _is_paused(self) -> bool:
        return self._paused_until > 0.0 and asyncio.get_running_loop().time() < self._paused_until

    def wake(self) -> None:
        """Let the next operations in as far as the limits allow."""
        if not self._queue:
            return
        while self._queue and self._is_open():
            turn, polls = self._queue[0]
            if not turn.done():
                if polls is not None:
                    if not polls.has_free:
                        polls.add_queue(self)
                        break
                    polls.reserve()
                self.waiting -= 1
                self.in_flight += 1
                self._sending += 1
                turn.set_result(None)
            self._queue.popleft()
        if self._queue and self._is_paused() and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._paused_until, self._end_pause)

    def _end_pause(self) -> None:
        self._timer = None
        self.wake()


class Slot:
    """Slot of one operation in flight; call :meth:`sent` once the server has accepted the request."""

    __slots__ = ("_limit", "_polls", "was_sent")

    def __init__(self, limit: InFlightLimit, polls: PollConnections | None) -> None:
        self._limit = limit
        self._polls = polls
        self.was_sent = False

    async def __aenter__(self) -> Slot:
        """Wait for the slot."""
        await self._limit.acquire(self._polls)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Give up the slot."""
        if kind is None and self.was_sent:
            self._limit.grow()
        self.sent()
        self._limit.leave(self._polls)

    def sent(self) -> None:
        """Let another request be sent: the server has accepted this one."""
        if not self.was_sent:
            self.was_sent = True
            self._limit.release_sending()
