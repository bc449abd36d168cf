"""What has become of the samples of a sampling session, in the order in which they ended."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict

import attrs

from tinkerwire.local.promises import Promise
from tinkerwire.local.signals import Signal

MOST_KEPT = 100_000
"""Completions kept for a client that never acknowledges any, as all do that poll each sample by itself."""


@attrs.frozen
class Ended:
    """A sample that has ended.

    Args:
        size_bytes: of its result; None when it failed.
    """

    request_id: str
    size_bytes: int | None


class CloneCompletions:
    """The samples of one copy of a sampling client; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._arrival = Signal()
        self._ended: OrderedDict[int, Ended] = OrderedDict()
        self._cursor = 0

    def add(self, promise: Promise) -> None:
        """Note that a sample has ended."""
        result = promise.result
        size_bytes = None if result is None or result.failed else len(result.content)
        with self._lock:
            self._cursor += 1
            self._ended[self._cursor] = Ended(promise.request_id, size_bytes)
            if len(self._ended) > MOST_KEPT:
                self._ended.popitem(last=False)
        self._arrival.wake()

    def acknowledge(self, cursor: int, fetched: set[str]) -> None:
        """Forget what a client knows: all up to a cursor, and those whose results it has fetched."""
        with self._lock:
            known = [at for at, each in self._ended.items() if at <= cursor or each.request_id in fetched]
            for at in known:
                del self._ended[at]

    async def after(self, cursor: int, timeout_s: float) -> tuple[list[Ended], int]:
        """What ended after a cursor, and the cursor to go on from; waits until there is any, or the time is over."""
        await self._arrival.wait(timeout_s, lambda: bool(self._ended))
        with self._lock:
            found = {at: each for at, each in self._ended.items() if at > cursor}
            return list(found.values()), max(found, default=cursor)


class Completions:
    """Those of all copies of a sampling client."""

    def __init__(self) -> None:
        self._clones: defaultdict[int, CloneCompletions] = defaultdict(CloneCompletions)

    def of_clone(self, number: int) -> CloneCompletions:
        """Those of one copy; 0 is the client itself."""
        return self._clones[number]
