"""A buffer that releases jobs in the order of their numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable

Job = Callable[[], None]


class ReorderBuffer:
    """Releases jobs one after another by number, starting at 1.

    A job is held until all lower numbers have been released. A missing number must not block the others forever:
    once a gap has blocked jobs for ``gap_wait_s`` seconds, the buffer skips the gap.

    Args:
        release: receives the jobs in order; called from any thread.
        gap_wait_s: seconds to wait for a missing number; 0 releases every job at once.
    """

    def __init__(self, release: Callable[[Job], None], gap_wait_s: float) -> None:
        self._release = release
        self._gap_wait_s = gap_wait_s
        self._lock = threading.RLock()
        self._waiting_jobs: dict[int, Job] = {}
        self._skipped: set[int] = set()
        self._timer: threading.Timer | None = None
        self._awaited_number = 0
        self.last_released = 0
        """Highest number that was released or skipped; jobs with lower numbers are too late."""

    def put(self, number: int, job: Job) -> None:
        """Add the job of a number, which must be above :attr:`last_released`."""
        with self._lock:
            self._waiting_jobs[number] = job
            self._advance()

    def skip(self, number: int) -> None:
        """Skip a number whose request was rejected; a corrected request may still arrive under it."""
        with self._lock:
            if number > self.last_released:
                self._skipped.add(number)
                self._advance()

    def flush(self) -> None:
        """Release all held jobs and skip every gap."""
        with self._lock:
            while self._waiting_jobs:
                self._skip_gap()

    def close(self) -> None:
        """Drop all held jobs."""
        with self._lock:
            self._waiting_jobs.clear()
            self._update_timer()

    def _advance(self) -> None:
        while self._waiting_jobs:
            following = self.last_released + 1
            if following in self._waiting_jobs:
                self._release(self._waiting_jobs.pop(following))
            elif following in self._skipped:
                self._skipped.discard(following)
            elif self._gap_wait_s > 0:
                break
            else:
                following = min(self._waiting_jobs) - 1
            self.last_released = following
        self._update_timer()

    def _skip_gap(self) -> None:
        self.last_released = min(self._waiting_jobs) - 1
        self._skipped = {number for number in self._skipped if number > self.last_released}
        self._advance()

    def _update_timer(self) -> None:
        """Run a timer for the gap that blocks held jobs, if any, and for no other gap."""
        if self._waiting_jobs and self._awaited_number == self.last_released + 1:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._awaited_number = self.last_released + 1 if self._waiting_jobs else 0
        if self._waiting_jobs:
            self._timer = threading.Timer(self._gap_wait_s, self._on_timeout, [self._awaited_number])
            self._timer.daemon = True
            self._timer.start()

    def _on_timeout(self, awaited_number: int) -> None:
        with self._lock:
            if self._waiting_jobs and awaited_number == self.last_released + 1:
                self._skip_gap()
