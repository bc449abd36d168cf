"""Queued work: a promise is given at once, the work runs on a worker, and its result is kept to be fetched."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

import attrs
import numpy as np

from tinkerwire._server.engine import EngineError
from tinkerwire._server.futures.cross_loop_event import CrossLoopEvent
from tinkerwire._server.futures.ids import RequestIds
from tinkerwire._server.futures.retained_results import RetainedResult, RetainedResults
from tinkerwire._server.http.encoding import Result, ResultEncoder
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.settings import RetentionPolicy
from tinkerwire._server.storage.bounded import compact
from tinkerwire_base.errors import DialectError
from tinkerwire_generated.models import RequestFailedResponse

log = logging.getLogger("tinkerwire._server")


class Listener(Protocol):
    """Follows the results of some requests; called from any thread."""

    def ended(self, request_id: str, result: Result) -> None:
        """Note that a result is there."""

    def gone(self, request_id: str) -> None:
        """Note that a result is no longer kept."""


class ServerFuture:
    """The result of queued work, encoded, as soon as it is there; may be awaited on any event loop."""

    def __init__(self, request_id: str, model_id: str | None, result: Result | None = None) -> None:
        self.request_id = request_id
        self.model_id = model_id
        self.result = result
        self._arrival = CrossLoopEvent()

    async def wait(self, timeout_s: float) -> Result | None:
        """Wait for the result and return it; None when it is not there after ``timeout_s`` seconds."""
        if self.result is None:
            await self._arrival.wait(timeout_s, lambda: self.result is not None)
        return self.result

    def resolve(self, result: Result) -> None:
        """Set the result, from any thread, and wake whoever waits."""
        self.result = result
        self._arrival.wake()


class FutureStore:
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
        retention: RetentionPolicy,
        clock: Callable[[], float],
        ids: RequestIds,
        dress: Callable[[Any], Any],
    ) -> None:
        self._encoder = encoder
        self._clock = clock
        self._ids = ids
        self._dress = dress
        self._lock = threading.RLock()
        self._count = 0
        self._open: dict[str, tuple[ServerFuture, Listener | None]] = {}
        self.kept = RetainedResults(retention, clock)
        """The results that are there."""

    @property
    def open_count(self) -> int:
        """How many have no result yet."""
        return len(self._open)

    def run(
        self,
        put: Callable[[Callable[[], None]], None],
        work: Callable[[], Any],
        model_id: str | None = None,
        listener: Listener | None = None,
    ) -> str:
        """Queue ``work`` and return its request id; what it returns (a model) or raises becomes the result.

        Args:
            put: queues a job on a worker.
            work: is not begun when the promise was cancelled before.
            model_id: the model that is worked on.
            listener: follows the result.
        """
        with self._lock:
            self._count += 1
            promise = ServerFuture(self._ids.of(self._count), model_id)
            self._open[promise.request_id] = promise, listener
        put(lambda: self._work(promise, work))
        return promise.request_id

    def cancel(self, promise: ServerFuture) -> None:
        """Fail a promise that has no result yet; work that has begun goes on for nobody."""
        self._finish(promise, self._failure("it was cancelled by cancel_future", "user"))

    def get(self, request_id: str) -> ServerFuture:
        """The promise of that id.

        Raises:
            Refusal: 404 for an id that was never given, 410 for one whose result is no longer kept.
        """
        with self._lock:
            if request_id in self._open:
                return self._open[request_id][0]
            kept = self.kept.get(request_id)
            if kept is not None:
                return ServerFuture(request_id, kept.model_id, kept.result)
            number = self._ids.number(request_id)
            if number is not None and 1 <= number <= self._count:
                raise HttpError(410, f"the work of {request_id} was done, but its result is no longer kept")
        raise HttpError(404, f"there is no request {request_id!r}; use the request_id that the submission gave")

    def mark_fetched(self, promise: ServerFuture) -> None:
        """Note that the result was sent, so that it may be dropped when memory is wanted."""
        with self._lock:
            self.kept.mark_fetched(promise.request_id)

    def abandon(self, model_id: str | None, reason: str) -> None:
        """Fail what has no result yet: of one model, or of all for None."""
        with self._lock:
            left = [promise for promise, _ in self._open.values() if model_id in (None, promise.model_id)]
        for promise in left:
            self._finish(promise, self._failure(reason, "server"))

    def _work(self, promise: ServerFuture, work: Callable[[], Any]) -> None:
        if promise.result is None:
            self._finish(promise, self._outcome(promise, work))

    def _outcome(self, promise: ServerFuture, work: Callable[[], Any]) -> Result:
        try:
            # Numbers that leave the range of floats are found and named afterwards; numpy need not warn of them.
            with np.errstate(all="ignore"):
                return self._encoder.result(self._dress(work()))
        except (EngineError, HttpError, DialectError) as error:
            return self._failure(str(error), "user")
        except Exception as error:
            log.exception("request %s failed", promise.request_id)
            kind = type(error).__name__
            return self._failure(f"the server failed: {kind}: {error}; its log has the traceback", "server")

    def _failure(self, reason: str, category: str) -> Result:
        return self._encoder.result(RequestFailedResponse(error=reason, category=category))

    def _finish(self, promise: ServerFuture, result: Result) -> None:
        result = attrs.evolve(result, content=compact(result.content))
        with self._lock:
            opened = self._open.pop(promise.request_id, None)
            if opened is None:
                return
            _, listener = opened
            # Before the result is kept, as the listener is called when that ends, too.
            if listener is not None:
                listener.ended(promise.request_id, result)
            self.kept.add(
                promise.request_id,
                RetainedResult(
                    result=result,
                    model_id=promise.model_id,
                    finished_at=self._clock(),
                    on_gone=None if listener is None else listener.gone,
                ),
            )
            promise.resolve(result)
