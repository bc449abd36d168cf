"""Progress bars on a terminal: tqdm if it is installed, a plain line otherwise."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from .background_thread import BackgroundThread

LINE_EVERY_S = 0.2
DRAW_WAIT_S = 0.1
"""Time that a result waits for its bar, so that the bar is printed before later output."""


class Bar(Protocol):
    """Visible counter."""

    def update(self, n: int) -> object:
        """Count ``n`` more steps."""
        ...

    def close(self) -> object:
        """Close the bar with its last count."""
        ...


class LineBar:
    """Line of text on standard error, overwritten a few times a second."""

    def __init__(self, total: int, description: str) -> None:
        self._total = total
        self._head = f"{description}: " if description else ""
        self._done = 0
        self._started = time.monotonic()
        self._written = float("-inf")

    def update(self, n: int) -> None:
        """Count ``n`` more steps."""
        self._done += n
        now = time.monotonic()
        if now - self._written >= LINE_EVERY_S:
            self._written = now
            self._write("")

    def close(self) -> None:
        """Close the bar with its last count."""
        self._write("\n")

    def _write(self, end: str) -> None:
        seconds = time.monotonic() - self._started
        sys.stderr.write(f"\r{self._head}{self._done}/{self._total} in {seconds:.1f} s{end}")
        sys.stderr.flush()


class ThreadSafeProgress:
    """Bar that any thread may update, and that closes once; a bar that cannot be shown is dropped.

    A separate thread draws it and the caller waits for it only briefly: the terminal may be closed or stopped.
    """

    def __init__(self, make: Callable[[], Bar]) -> None:
        self._make = make
        self._bar: Bar | None = None
        self._is_closed = False
        self._thread = BackgroundThread("tinkerwire-bar")
        self._draw(self._begin)

    def update(self) -> None:
        """Count one more step, unless the bar is closed."""
        if not self._is_closed:
            self._draw(self._update)

    def close(self) -> None:
        """Close the bar."""
        if not self._is_closed:
            self._is_closed = True
            self._draw(self._close)

    def _draw(self, step: Callable[[], None]) -> None:
        self._thread.call(partial(self._draw_unless_broken, step), DRAW_WAIT_S)

    def _draw_unless_broken(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException:
            if self._bar is not None:
                # A bar of tqdm would try once more when it is collected.
                with suppress(Exception):
                    self._bar.disable = True  # type: ignore[attr-defined]
            self._bar = None

    def _begin(self) -> None:
        self._bar = self._make()

    def _update(self) -> None:
        if self._bar is not None:
            self._bar.update(1)

    def _close(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()


class HiddenProgress(ThreadSafeProgress):
    """Bar that is not shown."""

    def __init__(self) -> None:
        self._is_closed = True


def create_progress(total: int, description: str, progress: bool | None) -> ThreadSafeProgress:
    """Return a bar of ``total`` steps; with ``progress`` None it is shown if standard error is a terminal."""
    if progress is None:
        progress = total > 0 and _is_watched()
    if not progress:
        return HiddenProgress()

    def make() -> Bar:
        try:
            tqdm: Any = importlib.import_module("tqdm")
        except ImportError:
            return LineBar(total, description)
        bar: Bar = tqdm.tqdm(total=total, desc=description or None)
        return bar

    return ThreadSafeProgress(make)


def _is_watched() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except Exception:  # it is closed, or something of the user's
        return False
