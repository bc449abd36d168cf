"""Tests of the engine's work on several threads: order, errors, and the exit of the process."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from tinkerwire._server.engine import parallel
from tinkerwire._server.engine.parallel import run_all

ENDING = """
import atexit, sys, threading, time
from tinkerwire._server.engine.parallel import run_all

def work():
    while True:
        try:
            list(run_all(lambda item: time.sleep(0.001), range(8)))
        except BaseException as error:
            sys.stderr.write(f"work failed: {error}\\n")
            return
        rounds.append(1)

def at_end():
    before, end = len(rounds), time.monotonic() + 30
    while len(rounds) == before and worker.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    sys.stderr.write(f"went on: {len(rounds) > before}\\n")

rounds = []
atexit.register(at_end)
worker = threading.Thread(target=work, daemon=True)
worker.start()
while not rounds:
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use several threads on every machine."""
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: 4)


def test_results_keep_the_order_of_items_over_threads() -> None:
    """More than one thread computes the results."""
    meeting = threading.Barrier(2, timeout=60)

    def work(item: int) -> int:
        if item < 2:
            meeting.wait()
        return item * item

    assert list(run_all(work, range(20))) == [item * item for item in range(20)]
    assert list(run_all(work, [7])) == [49]


def test_first_error_in_item_order_is_raised() -> None:
    """The error of the first failing item is raised, and no work starts after that."""
    started_items: list[int] = []

    def work(item: int) -> int:
        started_items.append(item)
        if item >= 3:
            raise ValueError(f"item {item}")
        return item

    with pytest.raises(ValueError, match="item 3"):
        list(run_all(work, range(10_000)))
    assert len(started_items) < 10


def test_numpy_errstate_applies_on_every_thread() -> None:
    """Floating-point errors that the caller ignores raise no warning on any thread."""
    meeting = threading.Barrier(2, timeout=60)

    def work(item: int) -> dict[str, str]:
        meeting.wait()
        return dict(np.geterr())

    with np.errstate(all="ignore"):
        results = list(run_all(work, range(2)))
    assert [set(result.values()) for result in results] == [{"ignore"}, {"ignore"}]


def test_process_exits_without_error_during_work() -> None:
    """Running work continues while the process exits, and prints no error."""
    completed = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60, check=False)
    assert (completed.returncode, completed.stderr) == (0, "went on: True\n")
