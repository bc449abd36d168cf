"""Futures of operations behave as those of ``concurrent.futures``, in less memory."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
from collections.abc import Callable

import pytest

from support.scripted import TEST_TIMEOUT_S
from tinkerwire._futures.operation_future import OperationFuture

WAITS: dict[str, Callable[[OperationFuture[int]], object]] = {
    "result": lambda future: future.result(TEST_TIMEOUT_S),
    "exception": lambda future: future.exception(TEST_TIMEOUT_S),
    "wait": lambda future: concurrent.futures.wait([future], TEST_TIMEOUT_S).done,
    "as_completed": lambda future: list(concurrent.futures.as_completed([future], TEST_TIMEOUT_S)),
}


def measure_bytes(future: object) -> int:
    """Return the size of a future with what only it refers to."""
    values = [future, *vars(future).values()]
    condition = vars(future)["_condition"]
    return sum(map(sys.getsizeof, [*values, vars(future), vars(condition), *vars(condition).values()]))


@pytest.mark.parametrize("name", WAITS)
def test_all_waiting_threads_get_the_result(name: str) -> None:
    """Threads that begin to wait at the same moment all return once the result is set."""
    for _ in range(50):
        future: OperationFuture[int] = OperationFuture()
        barrier, outcomes = threading.Barrier(4), list[object]()

        def wait(future: OperationFuture[int] = future, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(TEST_TIMEOUT_S)
            outcomes.append(WAITS[name](future))  # noqa: B023 - the loop joins the threads

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        barrier.wait(TEST_TIMEOUT_S)
        assert future.set_running_or_notify_cancel()
        future.set_result(1)
        for thread in threads:
            thread.join(TEST_TIMEOUT_S)
        expected = {"result": 1, "exception": None, "wait": {future}, "as_completed": [future]}[name]
        assert outcomes == [expected] * 3


def test_wait_times_out() -> None:
    """A wait ends at its time limit, and the future can be waited for again."""
    future: OperationFuture[int] = OperationFuture()
    for _ in range(2):
        with pytest.raises(concurrent.futures.TimeoutError):
            future.result(0.001)
    future.set_exception(ValueError("text"))
    with pytest.raises(ValueError, match="text"):
        future.result(0)


def test_unwaited_future_is_small() -> None:
    """A future without a waiting thread takes less than half the memory of a standard one."""
    future: OperationFuture[int] = OperationFuture()
    assert measure_bytes(future) < measure_bytes(concurrent.futures.Future()) / 2
