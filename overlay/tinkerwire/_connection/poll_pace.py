"""The pace of polls for samples that the server does not hold: it follows what client and server can take."""

from __future__ import annotations

import asyncio
import math
from collections import deque

MAX_POLLS_PER_S = 3000
"""More polls of samples that the server does not hold would leave too little time for new samples and results.

With 10,000 samples of 5 to 10 s in flight, 1,000 polls a second delay a result by up to 10 s, and 5,000 a second lower
the samples per second by a quarter.
"""
FEW_POLLS_PER_S = 500
"""So many polls a second, of few samples in flight, cost client and server little."""
SHORTEST_PAUSE_S = 0.1
"""Pause between polls for a sample however few are in flight."""
MAX_QUEUED_POLLS = 96
"""Polls without a response that may wait at the server; requests for new samples wait among them.

Fewer delay results, more delay new samples. With 2,000 callers, a server that answers 300 requests a second finished 75
samples a second with 96 polls and 71 with 128; the p99 from ready to caller was 5.9 and 4.4 s.
"""
SLOW_FACTOR = 2.0
"""A poll without a response for less than this multiple of the time of other requests may wait at the server."""
MIN_TURN_S = 0.1
"""Minimum time for which a poll without a response counts as one that waits at the server."""
RISE = 1 / 16
"""Part by which a slower response raises the response time."""


class PollPace:
    """Limits the polls for samples that wait at a server that does not hold them. Used on one event loop.

    A server that cannot answer as many polls as the client would send makes all of them wait, and new samples with
    them. Therefore each poll takes a turn, and returns it with the response. A poll that takes longer than requests
    which no server holds, such as those for new samples, is held, and returns its turn early.
    """

    def __init__(self) -> None:
        self.polling = 0
        """Number of samples that are polled one by one."""
        self._response_s = 0.0
        """Time of a response to a request that no server holds: one faster response lowers it, many slower raise it."""
        self._fastest_s = math.inf
        """Time of the fastest of these responses: that of the network and of an idle server."""
        self._taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    def observe(self, seconds: float) -> None:
        """Learn from the time of a response to a request that no server holds."""
        self._fastest_s = min(self._fastest_s, seconds)
        rise = seconds - self._response_s
        self._response_s += rise if rise < 0 else rise * RISE

    def is_slow(self, seconds: float) -> bool:
        """Return whether a poll took so long because every request does, and not because the server held it."""
        return seconds < self._response_s * SLOW_FACTOR

    @property
    def min_pause(self) -> float:
        """Minimum pause after a poll that the server did not hold."""
        return self.polling / MAX_POLLS_PER_S

    @property
    def max_pause(self) -> float:
        """Maximum pause after a poll that the server did not hold: the fewer samples, the shorter."""
        return max(SHORTEST_PAUSE_S, self.polling / FEW_POLLS_PER_S)

    def turn(self) -> Turn:
        """Return the turn of one poll, to be held with ``async with``."""
        return Turn(self)

    async def take(self) -> None:
        """Wait for a turn; turns come in the order of the calls."""
        if not self._queue and self._taken < self._max_taken:
            self._taken += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Give a turn to the polls that have waited longest."""
        self._taken -= 1
        while self._queue and self._taken < self._max_taken:
            place = self._queue.popleft()
            if not place.done():
                self._taken += 1
                place.set_result(None)

    @property
    def max_turn_s(self) -> float:
        """Time after which a poll without a response is held."""
        return max(MIN_TURN_S, self._response_s * SLOW_FACTOR)

    @property
    def _max_taken(self) -> float:
        # As many polls as the pace sends within one round trip do not wait at the server.
        return MAX_QUEUED_POLLS + MAX_POLLS_PER_S * self._fastest_s


class Turn:
    """Turn of one poll."""

    __slots__ = ("_pace", "_timer")

    def __init__(self, pace: PollPace) -> None:
        self._pace = pace
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        """Wait for the turn."""
        await self._pace.take()
        self._timer = asyncio.get_running_loop().call_later(self._pace.max_turn_s, self._give_back)

    async def __aexit__(self, *_: object) -> None:
        """Give the turn back with the response, if the server has not held the poll."""
        self._give_back()

    def _give_back(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._pace.give_back()
