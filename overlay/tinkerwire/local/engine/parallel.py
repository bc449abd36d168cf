"""Independent pieces of numpy work, side by side on the machine's cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

__all__ = ["run_all"]

T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 4


def run_all(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Results in the order of the items, whatever the number of threads; the first error is raised.

    Threads are enough: numpy lets others run while it computes.
    """
    if len(items) == 1 or _threads() == 1:
        return map(function, items)
    return _pool().map(function, items)


def _threads() -> int:
    return min(MOST_THREADS, os.cpu_count() or 1)


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_threads(), thread_name_prefix="tinkerwire-engine")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool but none of its threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)
