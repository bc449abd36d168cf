"""Queued work: a promise is given at once, the work runs on a worker, and its result is kept to be fetched."""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from tinkerwire.local.answers import Refusal
from tinkerwire.local.engine import EngineError
from tinkerwire.local.workers import Worker
from tinkerwire_base.converter import Converter
from tinkerwire_generated.models import RequestFailedResponse

log = logging.getLogger("tinkerwire.local")

Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


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

    def __init__(self, request_id: str, model_id: str | None) -> None:
        self.request_id = request_id
        self.model_id = model_id
        self.content: bytes | None = None
        self.finished_at = 0.0
        self.fetched = False
        self._lock = threading.Lock()
        self._waiters: list[Waiter] = []

    async def wait(self, timeout_s: float) -> bytes | None:
        """The result; None when it is not there after ``timeout_s`` seconds."""
        loop = asyncio.get_running_loop()
        arrival: asyncio.Future[None] = loop.create_future()
        waiter = (loop, arrival)
        with self._lock:
            if self.content is not None:
                return self.content
            self._waiters.append(waiter)
        try:
            await asyncio.wait({arrival}, timeout=timeout_s)
        finally:
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return self.content

    def resolve(self, content: bytes, now: float) -> bool:
        """Set the result, from any thread, and wake who waits; False when there was one already."""
        with self._lock:
            if self.content is not None:
                return False
            self.content, self.finished_at = content, now
            waiters, self._waiters = self._waiters, []
        for loop, arrival in waiters:
            try:
                loop.call_soon_threadsafe(_wake, arrival)
            except RuntimeError:
                # That loop was closed: nobody waits there any more.
                continue
        return True


class Promises:
    """All promises of a server; its methods may be called from any thread.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, converter: Converter, keeping: Keeping, clock: Callable[[], float]) -> None:
        self._converter = converter
        self._keeping = keeping
        self._clock = clock
        self._prefix = f"f-{uuid.uuid4().hex[:8]}-"
        self._lock = threading.Lock()
        self._count = 0
        self._open: dict[str, Promise] = {}
        self._finished: OrderedDict[str, Promise] = OrderedDict()
        self._fetched: OrderedDict[str, int] = OrderedDict()
        self._fetched_bytes = 0

    @property
    def open_count(self) -> int:
        """How many have no result yet."""
        return len(self._open)

    def run(self, worker: Worker, work: Callable[[], Any], model_id: str | None = None) -> Promise:
        """Queue ``work`` on a worker; what it returns (a model) or raises becomes the result."""
        with self._lock:
            self._count += 1
            promise = Promise(f"{self._prefix}{self._count}", model_id)
            self._open[promise.request_id] = promise
        worker.put(lambda: self._finish(promise, self._outcome(promise, work)))
        return promise

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
            number = request_id.removeprefix(self._prefix)
            if number != request_id and number.isdecimal() and 1 <= int(number[:18]) <= self._count:
                raise Refusal(410, f"the result of {request_id} is no longer kept; ask for the work again")
        raise Refusal(404, f"there is no request {request_id!r}; use the request_id that the submission gave")

    def mark_fetched(self, promise: Promise) -> None:
        """Note that the result went out, so that it may be dropped when memory is wanted."""
        with self._lock:
            if promise.fetched or promise.request_id not in self._finished:
                return
            promise.fetched = True
            size = len(promise.content or b"")
            self._fetched[promise.request_id] = size
            self._fetched_bytes += size
            while self._fetched_bytes > self._keeping.fetched_bytes and len(self._fetched) > 1:
                self._drop(next(iter(self._fetched)))

    def abandon(self, model_id: str | None, reason: str) -> None:
        """Fail what has no result yet: of one model, or of all for None."""
        left = [each for each in list(self._open.values()) if model_id in (None, each.model_id)]
        for promise in left:
            self._finish(promise, self._failure(reason, "server"))

    def _outcome(self, promise: Promise, work: Callable[[], Any]) -> bytes:
        try:
            # Numbers that leave the range of floats are found and named afterwards; numpy need not warn of them.
            with np.errstate(all="ignore"):
                return self._converter.encode(work())
        except (EngineError, Refusal) as fault:
            return self._failure(str(fault), "user")
        except Exception as fault:
            log.exception("request %s failed", promise.request_id)
            kind = type(fault).__name__
            return self._failure(f"the server failed: {kind}: {fault}; its log has the traceback", "server")

    def _failure(self, reason: str, category: str) -> bytes:
        return self._converter.encode(RequestFailedResponse(error=reason, category=category))

    def _finish(self, promise: Promise, content: bytes) -> None:
        now = self._clock()
        with self._lock:
            if self._open.pop(promise.request_id, None) is None:
                return
            self._finished[promise.request_id] = promise
        promise.resolve(content, now)
        with self._lock:
            self._drop_old()

    def _drop_old(self) -> None:
        oldest_kept = self._clock() - self._keeping.seconds
        while self._finished:
            first = next(iter(self._finished.values()))
            is_old = first.content is not None and first.finished_at <= oldest_kept
            if not is_old and len(self._finished) <= self._keeping.results:
                return
            self._drop(first.request_id)

    def _drop(self, request_id: str) -> None:
        self._finished.pop(request_id, None)
        self._fetched_bytes -= self._fetched.pop(request_id, 0)


def _wake(arrival: asyncio.Future[None]) -> None:
    if not arrival.done():
        arrival.set_result(None)
