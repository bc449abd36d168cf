"""Completion log: the finished samples of a sampling session, in the order in which they finished."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from weakref import WeakValueDictionary

import attrs

from tinkerwire._server.futures.cross_loop_event import CrossLoopEvent
from tinkerwire._server.http.encoding import EncodedResult


@attrs.frozen
class FinishedSample:
    """A finished sample.

    Args:
        request_id: request id of the sample.
        cursor: number of the sample among the finished samples of its sampling session.
        size_bytes: size of the result; None if the sample failed.
    """

    request_id: str
    cursor: int
    size_bytes: int | None


class CopyCompletions:
    """The finished samples of one copy of a sampling client, while their results are kept. Thread safe.

    Args:
        sampler_id: the sampling session.
        copy: number of the copy.
        cursors: iterator over the cursors of the sampling session.
    """

    def __init__(self, sampler_id: str, copy: int, cursors: Iterator[int]) -> None:
        self.sampler_id = sampler_id
        self.copy = copy
        self._cursors = cursors
        self._lock = threading.RLock()
        self._event = CrossLoopEvent()
        self._samples: dict[str, FinishedSample] = {}

    def next_cursor(self) -> int:
        """Return the cursor for the next finished sample."""
        return next(self._cursors)

    def on_finished(self, request_id: str, result: EncodedResult, cursor: int) -> None:
        """Add a finished sample."""
        size_bytes = None if result.failed else len(result.content)
        with self._lock:
            self._samples[request_id] = FinishedSample(request_id, cursor, size_bytes)
        self._event.set()

    def on_dropped(self, request_id: str) -> None:
        """Remove a sample whose result was dropped."""
        with self._lock:
            self._samples.pop(request_id, None)

    def acknowledge(self, cursor: int, fetched: set[str]) -> None:
        """Remove the samples up to a cursor and the samples with fetched results."""
        with self._lock:
            self._samples = {
                request_id: sample
                for request_id, sample in self._samples.items()
                if sample.cursor > cursor and request_id not in fetched
            }

    async def wait_after(self, cursor: int, timeout_s: float) -> tuple[list[FinishedSample], int]:
        """Wait for samples after a cursor; return them with the next cursor, or none after ``timeout_s`` seconds."""
        await self._event.wait(timeout_s, lambda: bool(self._samples))
        with self._lock:
            samples = [sample for sample in self._samples.values() if sample.cursor > cursor]
            return samples, max((sample.cursor for sample in samples), default=cursor)


class CompletionLog:
    """The finished samples of all copies of a sampling client.

    The log of a copy exists while a sample is queued or kept, or a request waits for a sample.

    Args:
        sampler_id: the sampling session.
        last_cursor: the highest cursor in use.
    """

    def __init__(self, sampler_id: str = "", last_cursor: int = 0) -> None:
        self._sampler_id = sampler_id
        # All copies share one counter, so that the cursor of a copy stays valid after its log was freed.
        self._cursors = itertools.count(last_cursor + 1)
        self._copies: WeakValueDictionary[int, CopyCompletions] = WeakValueDictionary()

    def for_copy(self, number: int) -> CopyCompletions:
        """Return the log of one copy; number 0 is the original client."""
        return self._copies.setdefault(number, CopyCompletions(self._sampler_id, number, self._cursors))
