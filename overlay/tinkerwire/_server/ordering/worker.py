"""Threads that do the work of the server, so that its event loop never waits for a model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

IDLE_S = 5.0
"""A thread without a job for this long ends, so that models that nobody uses any more cost none."""


class Worker:
    """Runs jobs in the order in which they come; threads start with a job, and end when there are none for a while.

    They are daemon threads: a process that ends does not wait for work that nobody will fetch.

    Args:
        name: of the threads.
        threads: how many jobs may run at once; with one, each starts when the one before it has ended.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name = name
        self._wanted = threads
        self._threads: list[threading.Thread] = []
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._closed = False

    def put(self, job: Callable[[], None]) -> None:
        """Add a job, which must not raise; after close it is dropped."""
        with self._lock:
            if self._closed:
                return
            if len(self._threads) < self._wanted:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                # Before the rest, for there may be no more threads to be had.
                thread.start()
                self._threads.append(thread)
            self._jobs.put(job)

    def close(self, *, finish: bool = False) -> None:
        """Stop: after all jobs when ``finish``, else after those that run now; does not wait for it."""
        with self._lock:
            self._closed = True
            if not finish:
                self._drop_jobs()
            for _ in self._threads:
                self._jobs.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait until the threads have ended, ``timeout_s`` seconds each at most; whether they have."""
        for thread in self._threads:
            thread.join(timeout_s)
        return not any(thread.is_alive() for thread in self._threads)

    def _drop_jobs(self) -> None:
        try:
            while True:
                self._jobs.get_nowait()
        except queue.Empty:
            return

    def _next_job(self) -> Callable[[], None] | None:
        while True:
            try:
                return self._jobs.get(timeout=IDLE_S)
            except queue.Empty:
                with self._lock:
                    # Under the lock of put, which starts a thread when it counts one too few.
                    if self._jobs.empty():
                        self._threads.remove(threading.current_thread())
                        return None

    def _run(self) -> None:
        while (job := self._next_job()) is not None:
            job()
            # Hold nothing while waiting: a job holds a model and a batch.
            del job
