"""Jobs go by their numbers, and nothing waits for ever for what does not come."""

from __future__ import annotations

import threading
from itertools import permutations
from typing import Any

import pytest

from tinkerwire._server.ordering.reorder_buffer import ReorderBuffer


class Log:
    """The numbers of the jobs that went, in order."""

    def __init__(self, gap_wait_s: float) -> None:
        self.went: list[int] = []
        self.reorder_buffer = ReorderBuffer(lambda job: job(), gap_wait_s)

    def put(self, *numbers: int) -> list[int]:
        for number in numbers:
            self.reorder_buffer.put(number, lambda number=number: self.went.append(number))
        return self.went


@pytest.mark.parametrize("order", list(permutations((1, 2, 3, 4))))
def test_the_order_of_arrival_does_not_matter(order: tuple[int, ...]) -> None:
    """All that are there go in the order of their numbers, none before those below it."""
    assert Log(60).put(*order) == [1, 2, 3, 4]


def test_what_is_ahead_is_held() -> None:
    """Until the gap is filled, and no longer."""
    log = Log(60)
    assert log.put(2, 4) == []
    assert log.put(1) == [1, 2]
    assert log.put(3) == [1, 2, 3, 4]


def test_a_gap_is_passed_over_in_time(timers: list[Any]) -> None:
    """What is behind a gap goes once it has waited; each gap is waited for by itself."""
    log = Log(60)
    assert log.put(1, 3, 4, 6) == [1]
    assert [timer.seconds for timer in timers] == [60]
    timers.pop().end()
    assert log.went == [1, 3, 4]
    timers.pop().end()
    assert (log.went, log.reorder_buffer.last_released, timers) == ([1, 3, 4, 6], 6, [])


def test_time_passes_without_a_test() -> None:
    """The timers are real ones."""
    log, gone = Log(0.01), threading.Event()
    log.reorder_buffer.put(2, gone.set)
    assert gone.wait(30)


def test_a_gap_that_is_filled_costs_no_later_one_its_time(timers: list[Any]) -> None:
    """The timer of a gap does not end the wait for another, not even when it is just going off."""
    log = Log(60)
    log.put(2)
    (first,) = timers
    assert log.put(1, 4) == [1, 2]
    assert first not in timers
    first.end()
    assert log.went == [1, 2]
    timers.pop().end()
    assert log.went == [1, 2, 4]


def test_what_was_refused_is_not_waited_for() -> None:
    """It may still come, as long as nothing behind it has gone."""
    log = Log(60)
    log.reorder_buffer.skip(1)
    assert log.put(1) == [1]
    log.reorder_buffer.skip(2)
    assert log.put(3) == [1, 3]
    log.put(5)
    log.reorder_buffer.skip(4)
    assert (log.went, log.reorder_buffer.last_released) == ([1, 3, 5], 5)


def test_without_a_wait_everything_goes_at_once() -> None:
    """And what comes late has had its turn."""
    log = Log(0)
    assert log.put(3) == [3]
    assert log.reorder_buffer.last_released == 3


def test_flush_lets_all_go_and_close_none(timers: list[Any]) -> None:
    """Over every gap, in order; no timer is left behind."""
    log = Log(60)
    log.put(7, 3, 5)
    log.reorder_buffer.flush()
    assert log.went == [3, 5, 7]
    log.put(9)
    log.reorder_buffer.close()
    log.reorder_buffer.flush()
    assert log.went == [3, 5, 7]
    assert not timers
