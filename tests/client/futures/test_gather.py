"""Tests of gather and as_completed: order, failures, cancellation, timeouts and progress bars."""

from __future__ import annotations

import asyncio
import gc
import io
import sys
import threading
import time
import types
from concurrent.futures import Future
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, wait_until
from support.scripted import TEST_TIMEOUT_S, ScriptedServer
from tinkerwire._futures import progress
from tinkerwire._futures.event_loop import LOOP

pytestmark = pytest.mark.timeout(60)


def create_futures(number: int) -> tuple[list[Future[int]], list[tw.APIFuture[int]]]:
    """Return futures that the test finishes, and an APIFuture of each."""
    inner: list[Future[int]] = [Future() for _ in range(number)]
    return inner, [tw.APIFuture(future) for future in inner]


class Terminal(io.StringIO):
    """Stream that counts as a terminal."""

    def isatty(self) -> bool:
        return True


def test_gather_returns_results_in_the_order_of_the_futures() -> None:
    """The order in which the futures finish does not matter; no futures give an empty list."""
    inner, futures = create_futures(3)
    gathered = tw.gather(iter(futures))
    for position in (2, 0, 1):
        assert not gathered.done()
        inner[position].set_result(position)
    assert gathered.result(TEST_TIMEOUT_S) == [0, 1, 2]
    assert (gathered.progress.done, gathered.progress.total) == (3, 3)
    assert tw.gather([]).result(0) == []


def test_gather_of_samples_is_awaitable(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Samples of a server can be awaited together on the user's loop."""
    sampling = client.create_sampling_client(base_model="base")

    async def run() -> list[tw.SampleResponse]:
        return await tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(20)])

    assert len(asyncio.run(run())) == 20


def test_first_failure_fails_gather_while_other_futures_continue() -> None:
    """Gather raises the first error before the other futures are done, and later errors do not replace it."""
    inner, futures = create_futures(3)
    gathered = tw.gather(futures)
    inner[1].set_exception(tw.TinkerError("second"))
    with pytest.raises(tw.TinkerError, match="second"):
        gathered.result(0)
    inner[0].set_result(0)
    inner[2].set_exception(tw.TinkerError("third"))
    with pytest.raises(tw.TinkerError, match="second"):
        gathered.result(0)
    assert futures[0].result(0) == 0
    with pytest.raises(tw.TinkerError, match="third"):
        futures[2].result(0)


def test_return_exceptions_puts_errors_in_place_of_results() -> None:
    """Gather does not raise, even for a cancelled future."""
    inner, futures = create_futures(3)
    gathered = tw.gather(futures, return_exceptions=True)
    error = tw.TinkerError("no")
    inner[0].set_exception(error)
    futures[1].cancel()
    inner[2].set_result(2)
    first, second, third = gathered.result(TEST_TIMEOUT_S)
    assert first is error  # type: ignore[comparison-overlap]
    assert isinstance(second, tw.CancelledSubmissionError)
    assert third == 2


def test_cancelling_gather_cancels_pending_futures() -> None:
    """Finished futures keep their results."""
    inner, futures = create_futures(3)
    inner[0].set_result(0)
    gathered = tw.gather(futures)
    assert gathered.cancel()
    assert [future.state for future in futures] == ["done", "cancelled", "cancelled"]
    with pytest.raises(tw.CancelledSubmissionError):
        gathered.result(0)


def test_cancelled_future_fails_gather() -> None:
    """Gather raises CancelledSubmissionError, as for other failures."""
    _, futures = create_futures(2)
    gathered = tw.gather(futures)
    futures[1].cancel()
    with pytest.raises(tw.CancelledSubmissionError):
        gathered.result(0)


def test_as_completed_yields_futures_in_order_of_completion() -> None:
    """It yields the futures themselves, failed ones included."""
    inner, futures = create_futures(3)
    inner[2].set_result(2)
    completed = iter(tw.as_completed(futures))
    assert next(completed) is futures[2]
    inner[0].set_exception(tw.TinkerError("no"))
    failed = next(completed)
    assert failed is futures[0]
    assert isinstance(failed.exception(), tw.TinkerError)
    inner[1].set_result(1)
    assert [future.result(0) for future in completed] == [1]


def test_as_completed_supports_async_for() -> None:
    """On an event loop, futures that other threads finish are yielded in order of completion."""
    inner, futures = create_futures(3)

    async def run() -> list[int]:
        results = []
        inner[1].set_result(1)
        async for future in tw.as_completed(futures):
            results.append(future.result(0))
            if len(results) == 1:
                await asyncio.to_thread(inner[2].set_result, 2)
            elif len(results) == 2:
                await asyncio.to_thread(inner[0].set_result, 0)
        return results

    assert asyncio.run(run()) == [1, 2, 0]


def test_as_completed_timeout_counts_finished_futures() -> None:
    """With ``for`` and ``async for``, the error has the count, and the operations continue."""
    inner, futures = create_futures(2)
    inner[0].set_result(0)
    with pytest.raises(TimeoutError, match=r"1 of 2 futures were done within 0\.01 s"):
        list(tw.as_completed(futures, timeout=0.01))

    async def run() -> None:
        async for _ in tw.as_completed(futures, timeout=0.01):
            pass

    with pytest.raises(TimeoutError, match="1 of 2"):
        asyncio.run(run())
    inner[1].set_result(1)
    assert futures[1].result(0) == 1


def test_as_completed_that_ends_in_time_yields_all_futures() -> None:
    """Futures that finish during the loop, before the timeout, are yielded and raise nothing."""
    inner, futures = create_futures(2)
    inner[0].set_result(0)
    results = []
    for future in tw.as_completed(futures, timeout=TEST_TIMEOUT_S):
        results.append(future.result(0))
        if len(results) == 1:
            threading.Timer(0.05, inner[1].set_result, [1]).start()
    assert results == [0, 1]

    inner, futures = create_futures(2)
    inner[0].set_result(0)

    async def run() -> list[int]:
        results = []
        async for future in tw.as_completed(futures, timeout=TEST_TIMEOUT_S):
            results.append(future.result(0))
            if len(results) == 1:
                asyncio.get_running_loop().call_later(0.05, inner[1].set_result, 1)
        return results

    assert asyncio.run(run()) == [0, 1]


def test_as_completed_timeout_covers_the_whole_loop() -> None:
    """The time that the loop's body takes counts; the futures that are done by then are yielded all the same."""
    inner, futures = create_futures(3)
    inner[0].set_result(0)
    inner[1].set_result(1)
    results = []
    with pytest.raises(TimeoutError, match=r"2 of 3 futures were done within 0\.2 s"):
        for future in tw.as_completed(futures, timeout=0.2):
            results.append(future.result(0))
            time.sleep(0.3)
            start = time.monotonic()
    assert results == [0, 1]
    assert time.monotonic() - start < 0.2

    async def run() -> None:
        nonlocal start
        async for future in tw.as_completed(futures, timeout=0.2):
            results.append(future.result(0))
            await asyncio.sleep(0.3)
            start = time.monotonic()

    results.clear()
    with pytest.raises(TimeoutError, match=r"2 of 3 futures were done within 0\.2 s"):
        asyncio.run(run())
    assert results == [0, 1]
    assert time.monotonic() - start < 0.2


def test_as_completed_without_time_yields_finished_futures() -> None:
    """A timeout of 0 s asks which futures are done, in both kinds of loops."""
    inner, futures = create_futures(2)
    for number, future in enumerate(inner):
        future.set_result(number)

    async def run() -> list[int]:
        return [future.result(0) async for future in tw.as_completed(futures, timeout=0)]

    assert [future.result(0) for future in tw.as_completed(futures, timeout=0)] == [0, 1]
    assert asyncio.run(run()) == [0, 1]


def test_as_completed_on_the_loop_thread_requires_async_for(client: tw.ServiceClient) -> None:
    """There, a plain ``for`` would deadlock, and raises at once."""
    _, futures = create_futures(1)

    async def block() -> None:
        list(tw.as_completed(futures))

    with pytest.raises(RuntimeError, match="async for"):
        LOOP.start(block).result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("function", [tw.gather, tw.as_completed])
def test_argument_must_be_an_iterable_of_futures(function: types.FunctionType) -> None:
    """The error has the type and the index of another value."""
    _, futures = create_futures(1)
    with pytest.raises(TypeError, match="put it into a list"):
        function(futures[0])
    with pytest.raises(TypeError, match=r"futures\[1\]: expected an APIFuture, got int"):
        function([futures[0], 3])


def test_no_progress_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """By default, nothing is written to a standard error that is not a terminal."""
    inner, futures = create_futures(1)
    inner[0].set_result(0)
    tw.gather(futures).result(0)
    assert list(tw.as_completed(futures)) == futures
    assert capsys.readouterr() == ("", "")


def test_terminal_without_tqdm_shows_a_counting_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line ends with the last count, which includes failures; progress=False disables it."""
    terminal = Terminal()
    # A fixture would run too early: pytest replaces standard error before the test.
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    inner, futures = create_futures(2)
    gathered = tw.gather(futures, description="drawing")
    inner[0].set_result(0)
    assert "drawing: 1/2" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()
    inner[1].set_exception(tw.TinkerError("no"))
    assert isinstance(gathered.exception(0), tw.TinkerError)
    terminal_text = terminal.getvalue()
    assert "drawing: 2/2" in terminal_text
    assert terminal_text.endswith("\n")
    tw.gather(futures, progress=False, return_exceptions=True).result(0)
    assert terminal.getvalue() == terminal_text


def test_tqdm_shows_progress_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is updated for each future and closed at the end."""
    calls: list[object] = []

    class FakeBar:
        def __init__(self, **options: object) -> None:
            calls.append(options)

        def update(self, n: int) -> None:
            calls.append(n)

        def close(self) -> None:
            calls.append("closed")

    module = types.ModuleType("tqdm")
    module.tqdm = FakeBar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", module)
    inner, futures = create_futures(2)
    completed = iter(tw.as_completed(futures, progress=True, description="d"))
    inner[0].set_result(0)
    next(completed)
    inner[1].set_result(1)
    assert len(list(completed)) == 1
    assert calls == [{"total": 2, "desc": "d"}, 1, 1, "closed"]


def test_failure_that_gather_did_not_raise_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Gather raises the first of two errors; the second is logged when its future is dropped."""
    inner, futures = create_futures(2)
    gathered = tw.gather(futures)
    inner[0].set_exception(tw.TinkerError("first"))
    inner[1].set_exception(tw.TinkerError("second"))
    assert isinstance(gathered.exception(0), tw.TinkerError)
    del futures, inner, gathered
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == [
        "an operation failed, and its error was never retrieved: second"
    ]


class Kernel:
    """A stand-in for IPython in the kernel of a notebook; its displayed widgets are kept."""

    kernel = object()

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, has_widgets: bool) -> None:
        self.displayed: list[Any] = []
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        ipython.get_ipython = lambda: self  # type: ignore[attr-defined]
        display.display = self.displayed.append  # type: ignore[attr-defined]
        widgets = ModuleType("ipywidgets")
        widgets.IntProgress = widgets.Label = SimpleNamespace  # type: ignore[attr-defined]
        widgets.HBox = lambda children: children  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        monkeypatch.setitem(sys.modules, "ipywidgets", widgets if has_widgets else None)
        monkeypatch.setitem(sys.modules, "tqdm", None)


def finish_two(**options: Any) -> None:
    """Gather two futures, of which one fails."""
    inner, futures = create_futures(2)
    gathered = tw.gather(futures, return_exceptions=True, description="work", **options)
    inner[0].set_result(0)
    inner[1].set_exception(ValueError("x"))
    gathered.result(TEST_TIMEOUT_S)


def test_progress_is_a_widget_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a kernel with ipywidgets, the bar is a widget with the count, and standard error stays empty."""
    kernel = Kernel(monkeypatch, has_widgets=True)
    finish_two()
    ((bar, text),) = kernel.displayed
    wait_until(lambda: getattr(bar, "bar_style", "") == "success", "the bar shows its end")
    assert (bar.value, bar.max, bar.description) == (2, 2, "work")
    assert text.value.startswith("2/2 in ")
    assert capsys.readouterr().err == ""


def test_progress_is_text_in_a_notebook_without_widgets(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a kernel without ipywidgets, the bar is a line of text; progress=False shows neither."""
    kernel = Kernel(monkeypatch, has_widgets=False)
    finish_two(progress=False)
    assert capfd.readouterr().err == ""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    finish_two()
    wait_until(lambda: stream.getvalue().endswith("\n"), "the bar is closed")
    assert "work: 2/2 in " in stream.getvalue()
    assert kernel.displayed == []


def test_widget_that_cannot_be_shown_does_not_lose_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the widgets leads to the text."""
    kernel = Kernel(monkeypatch, has_widgets=True)
    monkeypatch.delattr(sys.modules["ipywidgets"], "HBox")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    finish_two()
    assert kernel.displayed == []
