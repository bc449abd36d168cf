"""Parallel execution of independent numpy work on several threads."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import numpy as np

T = TypeVar("T")
R = TypeVar("R")
Jobs: TypeAlias = "deque[tuple[Future[R], T]]"

MAX_THREADS = 4


def run_all(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Apply a function to all items in parallel and yield the results in order.

    Threads suffice, because numpy releases the GIL. The calling thread computes as well, so no other thread is
    required.

    Raises:
        BaseException: the first error of the function.
    """
    results: deque[Future[R]] = deque(Future() for _ in items)
    jobs: Jobs[R, T] = deque(zip(results, items, strict=True))
    # Not an executor, which rejects work while the process exits, when workers may still run jobs.
    for _ in range(min(MAX_THREADS, os.cpu_count() or 1, len(items)) - 1):
        thread = threading.Thread(
            target=_run_jobs, args=(function, jobs, np.geterr()), name="tinkerwire-engine", daemon=True
        )
        # Threads cannot start while the process exits.
        with suppress(RuntimeError):
            thread.start()
    try:
        while results:
            while not results[0].done() and _run_next(function, jobs):
                pass
            yield results.popleft().result()
    finally:
        jobs.clear()


def _run_jobs(function: Callable[[T], R], jobs: Jobs[R, T], numpy_errors: Mapping[str, Any]) -> None:
    # The settings are per thread, and a new thread starts with numpy's defaults.
    with np.errstate(**numpy_errors):
        while _run_next(function, jobs):
            pass


def _run_next(function: Callable[[T], R], jobs: Jobs[R, T]) -> bool:
    """Run the next job; return False if the queue is empty."""
    try:
        result, item = jobs.popleft()
    except IndexError:
        return False
    try:
        result.set_result(function(item))
    except BaseException as error:
        # Earlier jobs have started already; later ones are not needed.
        jobs.clear()
        result.set_exception(error)
    return True
