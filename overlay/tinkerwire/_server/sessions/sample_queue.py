"""The queue of sample requests; pending requests for the same weights run as one batch in the engine."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

import attrs
import numpy as np

from tinkerwire._server.engine import Sampler, Samples
from tinkerwire._server.engine.decoding import SampleRun
from tinkerwire._server.futures.store import FutureJob
from tinkerwire._server.ordering.worker import Worker
from tinkerwire._server.sessions.samplers import SamplingSession, WeightsKey

log = logging.getLogger("tinkerwire._server")

MAX_JOINED_TOKENS = 1024
"""Number of prompt tokens after which no further request joins before the next pass, which would wait for them."""


@attrs.define(eq=False, kw_only=True)
class SampleTask:
    """A request for samples.

    Args:
        session: its sampling session; the weights are those that the session has when the request starts.
        start: starts the request on a sampler.
        prompt_length: number of tokens of the prompt.
        share: the part of a batch that the request takes.
    """

    session: SamplingSession
    start: Callable[[Sampler], SampleRun]
    prompt_length: int
    share: float
    job: FutureJob | None = None
    sampler: Sampler | None = None
    run: SampleRun | None = None

    def begin(self, sampler: Sampler) -> SampleRun:
        """Start the request on a sampler."""
        self.sampler = sampler
        self.run = self.start(sampler)
        return self.run


class _Batch:
    """Requests that run together.

    Args:
        key: the weights of all of them.
        sampler: the sampler of these weights.
        task: the first request.
    """

    def __init__(self, key: WeightsKey, sampler: Sampler, task: SampleTask) -> None:
        self.key = key
        self.sampler = sampler
        self.tasks = [task]
        """The unfinished requests."""
        self.joining = [task]
        """Requests that have started, and join before the next pass."""

    def has_room_for(self, task: SampleTask) -> bool:
        """Return whether a request fits; any fits an empty batch."""
        return not self.tasks or sum(member.share for member in self.tasks) + task.share <= 1.0


class SampleQueue:
    """Runs requests for samples in the order in which they are added, on several threads.

    A free thread starts the oldest request. If a batch of the same weights has room, the request joins it before its
    next pass, else the thread runs a new batch. A running batch also takes pending requests itself, but none that is
    younger than a request for weights without a batch; therefore no request waits forever. Thread safe.

    Args:
        get_sampler: returns the sampler of weights.
    """

    def __init__(self, get_sampler: Callable[[WeightsKey], Sampler]) -> None:
        self._get_sampler = get_sampler
        self._worker = Worker("tinkerwire-sampling", threads=max(1, os.cpu_count() or 1))
        self._pending: deque[SampleTask] = deque()
        self._batches: dict[WeightsKey, _Batch] = {}
        """The batch of each key that requests may join."""
        self._is_closed = False
        # Reentrant, because a signal handler may use the server in the midst of a locked step.
        self._lock = threading.RLock()

    def put(self, task: SampleTask, job: FutureJob) -> None:
        """Add a request.

        Args:
            task: the request.
            job: the work of its future, which calls :meth:`compute`.
        """
        task.job = job
        with self._lock:
            self._pending.append(task)
        # One call for each request, so that none remains; some do nothing, because a batch has taken the request.
        self._worker.put(self._run_oldest)

    def compute(self, task: SampleTask) -> Samples:
        """Return the samples of a request, which is computed alone unless a batch has finished it.

        Raises:
            EngineError: the request is invalid, or its weights are not finite.
        """
        if task.sampler is not None and task.run is not None and task.run.is_done:
            return task.sampler.finish(task.run)
        sampler = self._get_sampler(task.session.weights_key)
        return sampler.complete(task.begin(sampler))

    def close(self) -> None:
        """Drop all requests, and end the running ones before their next pass, without waiting for them."""
        with self._lock:
            self._is_closed = True
            self._pending.clear()
        self._worker.close()

    def join(self, timeout_s: float) -> bool:
        """Wait ``timeout_s`` seconds at most for each thread; return True if all threads have ended."""
        return self._worker.join(timeout_s)

    def _run_oldest(self) -> None:
        with self._lock:
            if not self._pending:
                return
            task = self._pending.popleft()
        # The engine checks its results for overflow, so numpy's warnings are redundant.
        with np.errstate(all="ignore"):
            key = task.session.weights_key
            if not self._begin(task, key):
                return
            with self._lock:
                batch = self._batches.get(key)
                if batch is not None and batch.has_room_for(task):
                    batch.tasks.append(task)
                    batch.joining.append(task)
                    return
                assert task.sampler is not None
                batch = self._batches[key] = _Batch(key, task.sampler, task)
            self._run_batch(batch)

    def _begin(self, task: SampleTask, key: WeightsKey) -> bool:
        """Start a request that is still pending; an error ends it."""
        assert task.job is not None
        if not task.job.is_pending():
            return False
        try:
            task.begin(self._get_sampler(key))
        except Exception:
            # The job computes it again, and the error becomes the result.
            self._run_job(task)
            return False
        return True

    @staticmethod
    def _run_job(task: SampleTask) -> None:
        """Set the result of a request."""
        # The job refers to the task: without this, only a collection of garbage would free the caches of its run.
        job, task.job = task.job, None
        assert job is not None
        job()

    def _run_batch(self, batch: _Batch) -> None:
        try:
            for run in batch.sampler.decode(partial(self._join, batch)):
                with self._lock:
                    task = next(task for task in batch.tasks if task.run is run)
                    batch.tasks.remove(task)
                self._run_job(task)
        except Exception:
            log.exception("a batch of samples failed; each of its requests is computed alone")
            with self._lock:
                self._end_batch(batch)
            for task in batch.tasks:
                self._run_job(task)

    def _join(self, batch: _Batch, is_empty: bool) -> list[SampleRun] | None:
        """Return the requests that join a batch now; None to end the batch."""
        tokens = 0
        while tokens < MAX_JOINED_TOKENS and (task := self._take(batch)) is not None:
            tokens += task.prompt_length
            has_begun = self._begin(task, batch.key)
            with self._lock:
                if has_begun:
                    batch.joining.append(task)
                else:
                    batch.tasks.remove(task)
        with self._lock:
            runs = [task.run for task in batch.joining if task.run is not None]
            batch.joining = []
            if self._is_closed or (is_empty and not runs):
                self._end_batch(batch)
                return None
            return runs

    def _take(self, batch: _Batch) -> SampleTask | None:
        """Take the oldest pending request for the weights of a batch, if it may join."""
        with self._lock:
            if self._batches.get(batch.key) is not batch:
                return None
            for index, task in enumerate(self._pending):
                key = task.session.weights_key
                if key == batch.key:
                    if not batch.has_room_for(task):
                        return None
                    del self._pending[index]
                    batch.tasks.append(task)
                    return task
                if key not in self._batches:
                    return None
            return None

    def _end_batch(self, batch: _Batch) -> None:
        if self._batches.get(batch.key) is batch:
            del self._batches[batch.key]
