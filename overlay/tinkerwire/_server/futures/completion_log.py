"""What has become of the samples of a sampling session, in the order in which they ended."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from weakref import WeakValueDictionary

import attrs

from tinkerwire._server.futures.cross_loop_event import CrossLoopEvent
from tinkerwire._server.http.encoding import Result


@attrs.frozen
class FinishedSample:
    """A sample that has ended.

    Args:
        cursor: counts those of the sampling session.
        size_bytes: of its result; None when it failed.
    """

    request_id: str
    cursor: int
    size_bytes: int | None


class CopyCompletions:
    """The samples of one copy of a sampling client whose results are kept; for use from any thread.

    Args:
        cursors: the next cursor of the sampling session.
    """

    def __init__(self, cursors: Iterator[int]) -> None:
        self._cursors = cursors
        self._lock = threading.RLock()
        self._arrival = CrossLoopEvent()
        self._ended: dict[str, FinishedSample] = {}

    def ended(self, request_id: str, result: Result) -> None:
        """Note that a sample has ended."""
        size_bytes = None if result.failed else len(result.content)
        with self._lock:
            self._ended[request_id] = FinishedSample(request_id, next(self._cursors), size_bytes)
        self._arrival.wake()

    def gone(self, request_id: str) -> None:
        """Forget a sample whose result is no longer kept."""
        with self._lock:
            self._ended.pop(request_id, None)

    def acknowledge(self, cursor: int, fetched: set[str]) -> None:
        """Forget what a client knows: all up to a cursor, and those whose results it has fetched."""
        with self._lock:
            known = [each for each in self._ended.values() if each.cursor <= cursor or each.request_id in fetched]
            for each in known:
                del self._ended[each.request_id]

    async def after(self, cursor: int, timeout_s: float) -> tuple[list[FinishedSample], int]:
        """Return what ended after a cursor, and the cursor to go on from; wait until there is any, or time is up."""
        await self._arrival.wait(timeout_s, lambda: bool(self._ended))
        with self._lock:
            found = [each for each in self._ended.values() if each.cursor > cursor]
            return found, max((each.cursor for each in found), default=cursor)


class CompletionLog:
    """Those of all copies of a sampling client.

    A copy's completions live as long as a sample that is queued or kept, or a request that waits for one.
    """

    def __init__(self) -> None:
        # One count for all copies, so that a copy goes on where it was after its completions were let go.
        self._cursors = itertools.count(1)
        self._clones: WeakValueDictionary[int, CopyCompletions] = WeakValueDictionary()

    def of_clone(self, number: int) -> CopyCompletions:
        """Return those of one copy; 0 is the client itself."""
        return self._clones.setdefault(number, CopyCompletions(self._cursors))
