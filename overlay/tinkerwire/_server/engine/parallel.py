"""Independent pieces of numpy work, side by side on the machine's cores."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import numpy as np

__all__ = ["run_all"]

T = TypeVar("T")
R = TypeVar("R")
Jobs: TypeAlias = "deque[tuple[Future[R], T]]"

MAX_THREADS = 4


def run_all(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Results in the order of the items, whatever the number of threads; the first error is raised.

    Threads are enough: numpy lets others run while it computes. This one works too, so that no other is needed.
    """
    results: deque[Future[R]] = deque(Future() for _ in items)
    jobs: Jobs[R, T] = deque(zip(results, items, strict=True))
    # Not an executor, which takes no more work once the process ends, while workers still have some.
    for _ in range(min(MAX_THREADS, os.cpu_count() or 1, len(items)) - 1):
        helper = threading.Thread(
            target=_help, args=(function, jobs, np.geterr()), name="tinkerwire-engine", daemon=True
        )
        # None starts any more while the process ends.
        with suppress(RuntimeError):
            helper.start()
    try:
        while results:
            while not results[0].done() and _run_next(function, jobs):
                pass
            yield results.popleft().result()
    finally:
        jobs.clear()


def _help(function: Callable[[T], R], jobs: Jobs[R, T], numpy_errors: Mapping[str, Any]) -> None:
    # Each thread has its own, and those of a new one are numpy's defaults.
    with np.errstate(**numpy_errors):
        while _run_next(function, jobs):
            pass


def _run_next(function: Callable[[T], R], jobs: Jobs[R, T]) -> bool:
    """Do the next job; False when there is none."""
    try:
        result, item = jobs.popleft()
    except IndexError:
        return False
    try:
        result.set_result(function(item))
    except BaseException as error:
        # Those before it were begun already.
        jobs.clear()
        result.set_exception(error)
    return True
