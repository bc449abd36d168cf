"""Sequence numbers: detects resent requests and keeps the order of a model's operations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

import attrs

from tinkerwire._server.bounded_table import BoundedTable
from tinkerwire._server.http.responses import HttpError, conflict_error

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

    def resume_after(self, number: int) -> None:
        """Start behind a number that an earlier server has released."""
        self.last_released = number

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


@attrs.frozen
class AcceptedRequest:
    """An accepted request.

    Args:
        key: the idempotency key, if any.
        fingerprint: fingerprint of the request.
        assigned_id: request id, or the id of the object that the request created.
    """

    key: str | None
    fingerprint: bytes
    assigned_id: str

    @property
    def content_bytes(self) -> int:
        """Memory of the contents."""
        return len(self.key or "") + len(self.fingerprint) + len(self.assigned_id)


NumberedRequests: TypeAlias = BoundedTable[tuple[str, int], AcceptedRequest]
"""Accepted requests of all counters, by owner of the counter and number."""


class Deduplicator:
    """Detects resent requests of one counter: equal number and equal key or fingerprint return the same id.

    Args:
        counter: name of the counter, for errors.
        owner: id of the session, model or sampling session that the counter belongs to.
        requests: table of accepted requests.
    """

    def __init__(self, counter: str, owner: str, requests: NumberedRequests) -> None:
        self._counter = counter
        self._owner = f"{counter} {owner}"
        self._requests = requests

    def find(self, number: int, key: str | None, fingerprint: bytes) -> str | None:
        """Return the assigned id of a resent request; None for a new number.

        Raises:
            HttpError: 409 if another request used the number.
        """
        accepted = self._requests.get((self._owner, number))
        if accepted is None:
            return None
        if accepted.fingerprint != fingerprint and (key is None or accepted.key != key):
            raise self.create_conflict(number)
        return accepted.assigned_id

    def is_used(self, number: int) -> bool:
        """Return whether a request used a number."""
        return (self._owner, number) in self._requests

    def accept(self, number: int, key: str | None, fingerprint: bytes, assigned_id: str) -> None:
        """Record a request under its number."""
        accepted = AcceptedRequest(key, fingerprint, assigned_id)
        self._requests.put((self._owner, number), accepted, accepted.content_bytes)

    def create_conflict(self, number: int) -> HttpError:
        """Create the error for a number that another request used."""
        return conflict_error(f"another request used {self._counter} {number}; use the next free one")


class SeqIdLog:
    """The seq_ids of one model: each belongs to one operation, and operations run in order.

    Args:
        release: receives the jobs in order.
        requests: detects resent requests by seq_id.
        strict: reject a seq_id that leaves a gap; otherwise operations behind a gap are held.
        gap_wait_s: seconds to hold operations behind a gap; see
            :class:`~tinkerwire._server.ordering.seq_ids.ReorderBuffer`.
    """

    def __init__(
        self, release: Callable[[Job], None], requests: Deduplicator, *, strict: bool, gap_wait_s: float
    ) -> None:
        self._strict = strict
        self._requests = requests
        self.reorder_buffer = ReorderBuffer(release, 0.0 if strict else gap_wait_s)

    def find(self, seq_id: int, key: str | None, fingerprint: bytes) -> str | None:
        """Return the request id of a resent request; None for a request that can be accepted now.

        Raises:
            HttpError: 409 for a seq_id that is too low or that another request used, and, if the log is strict, for a
                seq_id that is too high.
        """
        request_id = self._requests.find(seq_id, key, fingerprint) if seq_id > 0 else None
        expected = self.reorder_buffer.last_released + 1
        if request_id is not None or expected == seq_id:
            return request_id
        if seq_id < expected:
            raise conflict_error(f"seq_id {seq_id} is too low: expected {expected} or higher; seq_ids must increase")
        while self._requests.is_used(expected):
            # Its operation failed without having run, when an earlier server was closed.
            expected += 1
        if self._strict and expected != seq_id:
            raise conflict_error(f"seq_id {seq_id} is too high: expected {expected}; send the operations in order")
        return None

    def accept(self, seq_id: int, key: str | None, fingerprint: bytes, request_id: str) -> None:
        """Record a request under its seq_id."""
        self._requests.accept(seq_id, key, fingerprint, request_id)
