"""Threads that do the work of the server, so that its event loop never waits for a model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Worker:
    """Runs jobs in the order in which they come; threads start with the first job.

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
        self._lock = threading.Lock()
        self._closed = False

    def put(self, job: Callable[[], None]) -> None:
        """Add a job, which must not raise; after close it is dropped."""
        with self._lock:
            if self._closed:
                return
            self._jobs.put(job)
            if len(self._threads) < self._wanted:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()

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

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            # Hold nothing while waiting: a job holds a model and a batch.
            del job
