"""Calls on the client's loop run in order, whatever thread they come from."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from support.scripted import TEST_TIMEOUT_S
from tinkerwire._futures.event_loop import LOOP


@pytest.fixture(autouse=True)
def _loop() -> Iterator[None]:
    LOOP.acquire()
    yield
    LOOP.call(LOOP.release)


def run_to_end() -> None:
    """Wait until the loop has run all calls so far."""
    done = threading.Event()
    LOOP.call(done.set)
    assert done.wait(TEST_TIMEOUT_S)


def test_calls_of_each_thread_run_in_order() -> None:
    """No call of any thread is lost or overtaken by a later one of the same thread."""
    ran: list[tuple[int, int]] = []

    def add(thread: int) -> None:
        for number in range(2000):
            LOOP.call(lambda number=number: ran.append((thread, number)))  # type: ignore[misc]

    threads = [threading.Thread(target=add, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TEST_TIMEOUT_S)
    run_to_end()
    for index in range(4):
        assert [number for thread_index, number in ran if thread_index == index] == list(range(2000))


def test_error_of_a_call_loses_no_other_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls behind a failed one run; asyncio logs the errors."""
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", True)
    ran, gate = list[int](), threading.Event()
    LOOP.call(lambda: gate.wait(TEST_TIMEOUT_S) and None)
    for number in range(5):
        LOOP.call(lambda number=number: ran.append(number) if number % 2 else 1 / 0)  # type: ignore[misc]
    gate.set()
    run_to_end()
    assert ran == [1, 3]


def test_call_on_the_loop_runs_after_the_current_one() -> None:
    """A call from the loop's own thread runs later, not within the caller."""
    ran: list[str] = []

    def first() -> None:
        LOOP.call(lambda: ran.append("second"))
        ran.append("first")

    LOOP.call(first)
    run_to_end()
    run_to_end()
    assert ran == ["first", "second"]
