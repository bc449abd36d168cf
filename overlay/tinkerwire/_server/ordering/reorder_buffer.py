"""Jobs in the order of their numbers, in whatever order they come."""

from __future__ import annotations

import threading
from collections.abc import Callable

Job = Callable[[], None]


class ReorderBuffer:
    """Lets jobs go one after the other by their numbers, which count from 1.

    A job whose number is ahead is held until all before it have come. What never comes must not hang what did: once
    a gap has kept others waiting for ``gap_wait_s`` seconds, it is passed over, and what is behind it goes.

    Args:
        go: takes a job whose turn it is; called in order, from any thread.
        gap_wait_s: seconds that a gap is waited for; 0 lets every job go at once.
    """

    def __init__(self, go: Callable[[Job], None], gap_wait_s: float) -> None:
        self._go = go
        self._gap_wait_s = gap_wait_s
        self._lock = threading.RLock()
        self._held: dict[int, Job] = {}
        self._skipped: set[int] = set()
        self._timer: threading.Timer | None = None
        self._awaited = 0
        self.passed = 0
        """Highest number whose turn is over: lower ones come too late."""

    def put(self, number: int, job: Job) -> None:
        """Add the job of a number, which must be above :attr:`passed`."""
        with self._lock:
            self._held[number] = job
            self._advance()

    def skip(self, number: int) -> None:
        """Wait for a number no longer: its request was refused, though it may still be mended and come."""
        with self._lock:
            if number > self.passed:
                self._skipped.add(number)
                self._advance()

    def flush(self) -> None:
        """Let all go that are held, over every gap."""
        with self._lock:
            while self._held:
                self._pass_gap()

    def close(self) -> None:
        """Drop what is held."""
        with self._lock:
            self._held.clear()
            self._watch()

    def _advance(self) -> None:
        while self._held:
            following = self.passed + 1
            if following in self._held:
                self._go(self._held.pop(following))
            elif following in self._skipped:
                self._skipped.discard(following)
            elif self._gap_wait_s > 0:
                break
            else:
                following = min(self._held) - 1
            self.passed = following
        self._watch()

    def _pass_gap(self) -> None:
        self.passed = min(self._held) - 1
        self._skipped = {number for number in self._skipped if number > self.passed}
        self._advance()

    def _watch(self) -> None:
        """Have a timer for the gap that others wait for, if there is one, and none for any other."""
        if self._held and self._awaited == self.passed + 1:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._awaited = self.passed + 1 if self._held else 0
        if self._held:
            self._timer = threading.Timer(self._gap_wait_s, self._give_up, [self._awaited])
            self._timer.daemon = True
            self._timer.start()

    def _give_up(self, awaited: int) -> None:
        with self._lock:
            if self._held and awaited == self.passed + 1:
                self._pass_gap()
