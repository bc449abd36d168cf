"""Progress bars: a widget in notebooks, tqdm on a terminal, and a plain line without these packages."""

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


class WidgetBar:
    """Widget of ipywidgets in the output of the running cell. Created on the thread of the cell.

    Raises:
        ImportError: ipywidgets is not installed.
    """

    def __init__(self, total: int, description: str) -> None:
        widgets: Any = importlib.import_module("ipywidgets")
        display: Any = importlib.import_module("IPython.display")
        self._total = total
        self._done = 0
        self._started = self._drawn = time.monotonic()
        self._bar = widgets.IntProgress(value=0, min=0, max=max(1, total), description=description)
        self._text = widgets.Label(value=self._describe())
        display.display(widgets.HBox([self._bar, self._text]))

    def update(self, n: int) -> None:
        """Count ``n`` more steps."""
        self._done += n
        now = time.monotonic()
        # Each change of a widget is a message to the browser.
        if now - self._drawn >= LINE_EVERY_S:
            self._drawn = now
            self._draw()

    def close(self) -> None:
        """Show the last count; the widget stays in the output."""
        self._draw()
        self._bar.bar_style = "success" if self._done >= self._total else "warning"

    def _draw(self) -> None:
        self._bar.value = self._done
        self._text.value = self._describe()

    def _describe(self) -> str:
        return f"{self._done}/{self._total} in {time.monotonic() - self._started:.1f} s"


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
    """Return a bar of ``total`` steps; with ``progress`` None it is shown on a terminal and in notebooks."""
    is_notebook = _is_notebook()
    if progress is None:
        progress = total > 0 and (is_notebook or _is_watched())
    if not progress:
        return HiddenProgress()
    widget: Bar | None = None
    if is_notebook:
        # Any error: a bar is not worth the loss of the results.
        with suppress(Exception):
            widget = WidgetBar(total, description)

    def make() -> Bar:
        if widget is not None:
            return widget
        try:
            tqdm: Any = importlib.import_module("tqdm")
        except ImportError:
            return LineBar(total, description)
        bar: Bar = tqdm.tqdm(total=total, desc=description or None)
        return bar

    return ThreadSafeProgress(make)


def _is_notebook() -> bool:
    """Return whether this is the kernel of a notebook, without importing IPython."""
    try:
        shell = sys.modules["IPython"].get_ipython()
        return hasattr(shell, "kernel")
    except Exception:  # IPython is missing, or something else has its name
        return False


def _is_watched() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except Exception:  # it is closed, or something of the user's
        return False
