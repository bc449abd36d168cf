"""Queued work: a promise is given at once, the work runs on a worker, and its result is kept to be fetched."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from tinkerwire.local.answers import Refusal
from tinkerwire.local.engine import EngineError
from tinkerwire.local.request_ids import RequestIds
from tinkerwire.local.results import Result, ResultEncoder
from tinkerwire.local.signals import Signal
from tinkerwire_base.errors import DialectError
from tinkerwire_generated.models import RequestFailedResponse

log = logging.getLogger("tinkerwire.local")


@attrs.frozen(kw_only=True)
class Keeping:
    """How long results are kept once they are there.

    Args:
        seconds: age at which a result is dropped, fetched or not.
        results: how many are kept, fetched or not.
        fetched_bytes: how much of results that were fetched is kept, in case an answer was lost on its way.
    """

    seconds: float = 3600.0
    results: int = 100_000
    fetched_bytes: int = 256 * 2**20


class Promise:
    """The result of queued work, encoded, as soon as it is there; may be awaited on any event loop."""

    def __init__(self, request_id: str, model_id: str | None, on_end: Callable[[Promise], None] | None) -> None:
        self.request_id = request_id
        self.model_id = model_id
        self.result: Result | None = None
        self.finished_at = 0.0
        self.fetched = False
        self._on_end = on_end
        self._lock = threading.RLock()
        self._arrival = Signal()

    async def wait(self, timeout_s: float) -> Result | None:
        """The result; None when it is not there after ``timeout_s`` seconds."""
        await self._arrival.wait(timeout_s, lambda: self.result is not None)
        return self.result

    def resolve(self, result: Result, now: float) -> bool:
        """Set the result, from any thread, and wake who waits; False when there was one already."""
        with self._lock:
            if self.result is not None:
                return False
            self.result, self.finished_at = result, now
        self._arrival.wake()
        if self._on_end is not None:
            self._on_end(self)
        return True


class Promises:
    """All promises of a server; its methods may be called from any thread.

    Args:
        encoder: makes results of what work returns.
        clock: seconds since the epoch.
        ids: makes request ids.
        dress: what becomes of a result before it is encoded.
    """

    def __init__(
        self,
        encoder: ResultEncoder,
        keeping: Keeping,
        clock: Callable[[], float],
        ids: RequestIds,
        dress: Callable[[Any], Any],
    ) -> None:
        self._encoder = encoder
        self._keeping = keeping
        self._clock = clock
        self._ids = ids
        self._dress = dress
        self._lock = threading.RLock()
        self._count = 0
        self._open: dict[str, Promise] = {}
        self._finished: OrderedDict[str, Promise] = OrderedDict()
        self._fetched: OrderedDict[str, int] = OrderedDict()
        self._fetched_bytes = 0

    @property
    def open_count(self) -> int:
        """How many have no result yet."""
        return len(self._open)

    def run(
        self,
        put: Callable[[Callable[[], None]], None],
        work: Callable[[], Any],
        model_id: str | None = None,
        on_end: Callable[[Promise], None] | None = None,
    ) -> Promise:
        """Queue ``work``; what it returns (a model) or raises becomes the result.

        Args:
            put: queues a job on a worker.
            work: is not begun when the promise was cancelled before.
            model_id: the model that is worked on.
            on_end: is told of the promise once its result is there, from any thread.
        """
        with self._lock:
            self._count += 1
            promise = Promise(self._ids.of(self._count), model_id, on_end)
            self._open[promise.request_id] = promise
        put(lambda: self._work(promise, work))
        return promise

    def cancel(self, promise: Promise) -> None:
        """Fail a promise that has no result yet; work that has begun goes on for nobody."""
        self._finish(promise, self._failure("it was cancelled by cancel_future", "user"))

    def get(self, request_id: str) -> Promise:
        """The promise of that id.

        Raises:
            Refusal: 404 for an id that was never given, 410 for one whose result is no longer kept.
        """
        with self._lock:
            self._drop_old()
            promise = self._open.get(request_id) or self._finished.get(request_id)
            if promise is not None:
                return promise
            number = self._ids.number(request_id)
            if number is not None and 1 <= number <= self._count:
                raise Refusal(410, f"the result of {request_id} is no longer kept; ask for the work again")
        raise Refusal(404, f"there is no request {request_id!r}; use the request_id that the submission gave")

    def mark_fetched(self, promise: Promise) -> None:
        """Note that the result went out, so that it may be dropped when memory is wanted."""
        with self._lock:
            if promise.fetched or promise.request_id not in self._finished:
                return
            promise.fetched = True
            size = len(promise.result.content) if promise.result is not None else 0
            self._fetched[promise.request_id] = size
            self._fetched_bytes += size
            while self._fetched_bytes > self._keeping.fetched_bytes and len(self._fetched) > 1:
                self._drop(next(iter(self._fetched)))

    def abandon(self, model_id: str | None, reason: str) -> None:
        """Fail what has no result yet: of one model, or of all for None."""
        left = [each for each in list(self._open.values()) if model_id in (None, each.model_id)]
        for promise in left:
            self._finish(promise, self._failure(reason, "server"))

    def _work(self, promise: Promise, work: Callable[[], Any]) -> None:
        if promise.result is None:
            self._finish(promise, self._outcome(promise, work))

    def _outcome(self, promise: Promise, work: Callable[[], Any]) -> Result:
        try:
            # Numbers that leave the range of floats are found and named afterwards; numpy need not warn of them.
            with np.errstate(all="ignore"):
                return self._encoder.result(self._dress(work()))
        except (EngineError, Refusal, DialectError) as fault:
            return self._failure(str(fault), "user")
        except Exception as fault:
            log.exception("request %s failed", promise.request_id)
            kind = type(fault).__name__
            return self._failure(f"the server failed: {kind}: {fault}; its log has the traceback", "server")

    def _failure(self, reason: str, category: str) -> Result:
        return self._encoder.result(RequestFailedResponse(error=reason, category=category))

    def _finish(self, promise: Promise, result: Result) -> None:
        now = self._clock()
        with self._lock:
            if self._open.pop(promise.request_id, None) is None:
                return
            self._finished[promise.request_id] = promise
        promise.resolve(result, now)
        with self._lock:
            self._drop_old()

    def _drop_old(self) -> None:
        oldest_kept = self._clock() - self._keeping.seconds
        while self._finished:
            first = next(iter(self._finished.values()))
            is_old = first.result is not None and first.finished_at <= oldest_kept
            if not is_old and len(self._finished) <= self._keeping.results:
                return
            self._drop(first.request_id)

    def _drop(self, request_id: str) -> None:
        self._finished.pop(request_id, None)
        self._fetched_bytes -= self._fetched.pop(request_id, 0)
