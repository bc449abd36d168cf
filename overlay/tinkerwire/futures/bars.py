"""Progress bars for people who watch: tqdm's where it is installed, a plain line otherwise."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from typing import Any, Protocol

LINE_EVERY_S = 0.2


class Bar(Protocol):
    """Something that counts where people see it."""

    def update(self, n: int) -> object:
        """Count ``n`` more."""
        ...

    def close(self) -> object:
        """Leave the last count standing."""
        ...


class NoBar:
    """Shows nothing."""

    def update(self, n: int) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class LineBar:
    """One line of text on standard error, written over itself a few times a second."""

    def __init__(self, total: int, description: str) -> None:
        self._total = total
        self._head = f"{description}: " if description else ""
        self._done = 0
        self._started = time.monotonic()
        self._written = float("-inf")

    def update(self, n: int) -> None:
        """Count ``n`` more."""
        self._done += n
        now = time.monotonic()
        if now - self._written >= LINE_EVERY_S:
            self._written = now
            self._write("")

    def close(self) -> None:
        """Leave the last count standing."""
        self._write("\n")

    def _write(self, end: str) -> None:
        seconds = time.monotonic() - self._started
        sys.stderr.write(f"\r{self._head}{self._done}/{self._total} in {seconds:.1f} s{end}")
        sys.stderr.flush()


class Counting:
    """A bar that any thread may count on, and that ends once."""

    def __init__(self, bar: Bar) -> None:
        self._bar: Bar | None = bar
        self._lock = threading.RLock()

    def update(self) -> None:
        """Count one more; nothing once it is closed."""
        with self._lock:
            if self._bar is not None:
                self._bar.update(1)

    def close(self) -> None:
        """End it."""
        with self._lock:
            bar, self._bar = self._bar, None
            if bar is not None:
                bar.close()


def bar(total: int, description: str, progress: bool | None) -> Counting:
    """A bar of ``total`` steps; ``progress`` None shows it if standard error is a terminal."""
    if progress is None:
        progress = total > 0 and sys.stderr is not None and sys.stderr.isatty()
    if not progress:
        return Counting(NoBar())
    try:
        tqdm: Any = importlib.import_module("tqdm")
    except ImportError:
        return Counting(LineBar(total, description))
    return Counting(tqdm.tqdm(total=total, desc=description or None))
