"""gather and as_completed: order, failures, cancellation, time-outs, bars; and on event loops as in threads."""

from __future__ import annotations

import asyncio
import gc
import io
import sys
import types
from concurrent.futures import Future

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT
from support.scripted import PATIENCE_S, ScriptedServer
from tinkerwire._futures import progress
from tinkerwire._futures.event_loop import LOOP

pytestmark = pytest.mark.timeout(60)


def open_futures(number: int) -> tuple[list[Future[int]], list[tw.APIFuture[int]]]:
    """Futures that the test ends itself."""
    inner: list[Future[int]] = [Future() for _ in range(number)]
    return inner, [tw.APIFuture(each) for each in inner]


class Terminal(io.StringIO):
    """Something to write to that people see."""

    def isatty(self) -> bool:
        return True


def test_results_stand_in_the_order_of_the_futures() -> None:
    """Whatever ends first, the results come in the order of what was given."""
    inner, futures = open_futures(3)
    whole = tw.gather(iter(futures))
    for position in (2, 0, 1):
        assert not whole.done()
        inner[position].set_result(position)
    assert whole.result(PATIENCE_S) == [0, 1, 2]
    assert (whole.progress.done, whole.progress.total) == (3, 3)
    assert tw.gather([]).result(0) == []


def test_gather_of_samples_is_awaitable(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Real samples, awaited on a loop of the user's."""
    sampling = client.create_sampling_client(base_model="base")

    async def run() -> list[tw.SampleResponse]:
        return await tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(20)])

    assert len(asyncio.run(run())) == 20


def test_the_first_failure_fails_it_and_the_others_go_on() -> None:
    """The first error is there before the others are done; they are not touched."""
    inner, futures = open_futures(3)
    whole = tw.gather(futures)
    inner[1].set_exception(tw.TinkerError("second"))
    with pytest.raises(tw.TinkerError, match="second"):
        whole.result(0)
    inner[0].set_result(0)
    inner[2].set_exception(tw.TinkerError("third"))
    with pytest.raises(tw.TinkerError, match="second"):
        whole.result(0)
    assert futures[0].result(0) == 0
    with pytest.raises(tw.TinkerError, match="third"):
        futures[2].result(0)


def test_errors_in_the_places_of_results() -> None:
    """With return_exceptions nothing is raised, not even by a part that was cancelled."""
    inner, futures = open_futures(3)
    whole = tw.gather(futures, return_exceptions=True)
    error = tw.TinkerError("no")
    inner[0].set_exception(error)
    futures[1].cancel()
    inner[2].set_result(2)
    first, second, third = whole.result(PATIENCE_S)
    assert first is error  # type: ignore[comparison-overlap]
    assert isinstance(second, tw.CancelledSubmissionError)
    assert third == 2


def test_cancelling_the_whole_cancels_the_parts() -> None:
    """Who gives up all of it gives up each; what is done stays done."""
    inner, futures = open_futures(3)
    inner[0].set_result(0)
    whole = tw.gather(futures)
    assert whole.cancel()
    assert [future.state for future in futures] == ["done", "cancelled", "cancelled"]
    with pytest.raises(tw.CancelledSubmissionError):
        whole.result(0)


def test_a_cancelled_part_fails_the_whole() -> None:
    """A part that somebody else cancels is a failure like others."""
    _, futures = open_futures(2)
    whole = tw.gather(futures)
    futures[1].cancel()
    with pytest.raises(tw.CancelledSubmissionError):
        whole.result(0)


def test_as_completed_gives_the_futures_as_they_end() -> None:
    """Each future itself, first done first, the failed ones as well."""
    inner, futures = open_futures(3)
    inner[2].set_result(2)
    arriving = iter(tw.as_completed(futures))
    assert next(arriving) is futures[2]
    inner[0].set_exception(tw.TinkerError("no"))
    failed = next(arriving)
    assert failed is futures[0]
    assert isinstance(failed.exception(), tw.TinkerError)
    inner[1].set_result(1)
    assert [future.result(0) for future in arriving] == [1]


def test_as_completed_on_an_event_loop() -> None:
    """``async for`` gives the same, while other threads end the futures."""
    inner, futures = open_futures(3)

    async def run() -> list[int]:
        found = []
        inner[1].set_result(1)
        async for future in tw.as_completed(futures):
            found.append(future.result(0))
            if len(found) == 1:
                await asyncio.to_thread(inner[2].set_result, 2)
            elif len(found) == 2:
                await asyncio.to_thread(inner[0].set_result, 0)
        return found

    assert asyncio.run(run()) == [1, 2, 0]


def test_as_completed_in_time_or_not_at_all() -> None:
    """A time-out says how far it got, and leaves the operations alone; an abandoned loop disturbs nobody."""
    inner, futures = open_futures(2)
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


def test_the_clients_own_thread_is_not_blocked(client: tw.ServiceClient) -> None:
    """A plain ``for`` on the loop thread, which could never end, is refused."""
    _, futures = open_futures(1)

    async def block() -> None:
        list(tw.as_completed(futures))

    with pytest.raises(RuntimeError, match="async for"):
        LOOP.start(block).result(PATIENCE_S)


@pytest.mark.parametrize("function", [tw.gather, tw.as_completed])
def test_only_futures(function: types.FunctionType) -> None:
    """Something else is refused by name and place."""
    _, futures = open_futures(1)
    with pytest.raises(TypeError, match="put it into a list"):
        function(futures[0])
    with pytest.raises(TypeError, match=r"futures\[1\]: expected an APIFuture, got int"):
        function([futures[0], 3])


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nobody watches, nothing is written."""
    inner, futures = open_futures(1)
    inner[0].set_result(0)
    tw.gather(futures).result(0)
    assert list(tw.as_completed(futures)) == futures
    assert capsys.readouterr() == ("", "")


def test_a_plain_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal without tqdm a line counts, and ends with the last count, also of a failure."""
    terminal = Terminal()
    # Not in a fixture: pytest puts its own standard error in place before the test.
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    inner, futures = open_futures(2)
    whole = tw.gather(futures, description="drawing")
    inner[0].set_result(0)
    assert "drawing: 1/2" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()
    inner[1].set_exception(tw.TinkerError("no"))
    assert isinstance(whole.exception(0), tw.TinkerError)
    written = terminal.getvalue()
    assert "drawing: 2/2" in written
    assert written.endswith("\n")
    tw.gather(futures, progress=False, return_exceptions=True).result(0)
    assert terminal.getvalue() == written


def test_a_bar_of_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tqdm is installed, it is used, and closed at the end."""
    said: list[object] = []

    class Fake:
        def __init__(self, **options: object) -> None:
            said.append(options)

        def update(self, n: int) -> None:
            said.append(n)

        def close(self) -> None:
            said.append("closed")

    module = types.ModuleType("tqdm")
    module.tqdm = Fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", module)
    inner, futures = open_futures(2)
    arriving = iter(tw.as_completed(futures, progress=True, description="d"))
    inner[0].set_result(0)
    next(arriving)
    inner[1].set_result(1)
    assert len(list(arriving)) == 1
    assert said == [{"total": 2, "desc": "d"}, 1, 1, "closed"]


def test_a_failure_that_gather_did_not_report_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of two failures the caller hears one; the other is logged when its future is dropped."""
    inner, futures = open_futures(2)
    whole = tw.gather(futures)
    inner[0].set_exception(tw.TinkerError("first"))
    inner[1].set_exception(tw.TinkerError("second"))
    assert isinstance(whole.exception(0), tw.TinkerError)
    del futures, inner, whole
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == [
        "an operation failed, and its error was never retrieved: second"
    ]
