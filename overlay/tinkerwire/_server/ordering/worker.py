"""Worker threads, so that the event loop of the server never waits for a model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

IDLE_TIMEOUT_S = 5.0
"""Seconds after which a thread without a job ends, so that unused models do not hold threads."""


class Worker:
    """Runs jobs in the order in which they are added, on threads that start with a job and end when idle.

    The threads are daemon threads: the process does not wait for them when it ends.

    Args:
        name: name of the threads.
        threads: maximum number of jobs that run at once; with 1, jobs run one after another.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name = name
        self._max_threads = threads
        self._threads: list[threading.Thread] = []
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._closed = False

    def put(self, job: Callable[[], None]) -> None:
        """Add a job, which must not raise; a closed worker drops it."""
        with self._lock:
            if self._closed:
                return
            if len(self._threads) < self._max_threads:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                # First, because the system may not have another thread.
                thread.start()
                self._threads.append(thread)
            self._jobs.put(job)

    def close(self, *, finish: bool = False) -> None:
        """Stop the threads without waiting for them.

        Args:
            finish: run all queued jobs first; otherwise drop them.
        """
        with self._lock:
            self._closed = True
            if not finish:
                self._drop_jobs()
            for _ in self._threads:
                self._jobs.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait ``timeout_s`` seconds at most for each thread; return True if all threads have ended."""
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
                return self._jobs.get(timeout=IDLE_TIMEOUT_S)
            except queue.Empty:
                with self._lock:
                    # With the lock of put(), which counts the threads.
                    if self._jobs.empty():
                        self._threads.remove(threading.current_thread())
                        return None

    def _run(self) -> None:
        while (job := self._next_job()) is not None:
            job()
            # A job refers to a model and a batch; do not keep them alive while waiting.
            del job
