"""Tests of the reorder buffer: jobs run in the order of their numbers, and gaps time out."""

from __future__ import annotations

import threading
from itertools import permutations
from typing import Any

import pytest

from tinkerwire._server.ordering.seq_ids import ReorderBuffer


class Log:
    """Log of the numbers of the jobs that ran, in order."""

    def __init__(self, gap_wait_s: float) -> None:
        self.executed: list[int] = []
        self.reorder_buffer = ReorderBuffer(lambda job: job(), gap_wait_s)

    def put(self, *numbers: int) -> list[int]:
        for number in numbers:
            self.reorder_buffer.put(number, lambda number=number: self.executed.append(number))
        return self.executed


@pytest.mark.parametrize("order", list(permutations((1, 2, 3, 4))))
def test_jobs_run_in_the_order_of_their_numbers(order: tuple[int, ...]) -> None:
    """All present jobs run in the order of their numbers, regardless of the order of arrival."""
    assert Log(60).put(*order) == [1, 2, 3, 4]


def test_job_after_a_gap_waits() -> None:
    """It waits until the gap is filled, and no longer."""
    log = Log(60)
    assert log.put(2, 4) == []
    assert log.put(1) == [1, 2]
    assert log.put(3) == [1, 2, 3, 4]


def test_gap_is_skipped_after_its_wait(timers: list[Any]) -> None:
    """Jobs behind a gap run after its wait; each gap has its own wait."""
    log = Log(60)
    assert log.put(1, 3, 4, 6) == [1]
    assert [timer.seconds for timer in timers] == [60]
    timers.pop().end()
    assert log.executed == [1, 3, 4]
    timers.pop().end()
    assert (log.executed, log.reorder_buffer.last_released, timers) == ([1, 3, 4, 6], 6, [])


def test_gap_timer_fires_in_real_time() -> None:
    """The timers are real ones."""
    log, executed = Log(0.01), threading.Event()
    log.reorder_buffer.put(2, executed.set)
    assert executed.wait(30)


def test_filled_gap_does_not_shorten_the_wait_of_another(timers: list[Any]) -> None:
    """The timer of a gap does not end the wait for another, even if it fires at that moment."""
    log = Log(60)
    log.put(2)
    (first,) = timers
    assert log.put(1, 4) == [1, 2]
    assert first not in timers
    first.end()
    assert log.executed == [1, 2]
    timers.pop().end()
    assert log.executed == [1, 2, 4]


def test_rejected_number_is_not_waited_for() -> None:
    """It may still arrive, until a job behind it has run."""
    log = Log(60)
    log.reorder_buffer.skip(1)
    assert log.put(1) == [1]
    log.reorder_buffer.skip(2)
    assert log.put(3) == [1, 3]
    log.put(5)
    log.reorder_buffer.skip(4)
    assert (log.executed, log.reorder_buffer.last_released) == ([1, 3, 5], 5)


def test_zero_wait_runs_jobs_at_once() -> None:
    """A late job has lost its turn."""
    log = Log(0)
    assert log.put(3) == [3]
    assert log.reorder_buffer.last_released == 3


def test_flush_runs_all_jobs_and_close_runs_none(timers: list[Any]) -> None:
    """Flush runs over every gap, in order; no timer remains."""
    log = Log(60)
    log.put(7, 3, 5)
    log.reorder_buffer.flush()
    assert log.executed == [3, 5, 7]
    log.put(9)
    log.reorder_buffer.close()
    log.reorder_buffer.flush()
    assert log.executed == [3, 5, 7]
    assert not timers
