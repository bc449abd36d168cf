"""Tests of wait_for: results, errors, timeouts, and cancellations at any moment."""

from __future__ import annotations

import asyncio

import pytest

from support import virtual_time
from tinkerwire._futures.timeout import wait_for


async def return_after(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


def test_wait_for_returns_the_result_or_raises_the_error() -> None:
    """An awaitable that ends in time has the same outcome with and without a limit."""

    async def fail() -> None:
        raise ValueError("mine")

    for timeout in (10.0, None):
        assert virtual_time.run(wait_for(return_after(5), timeout)) == "done"
        with pytest.raises(ValueError, match="mine"):
            virtual_time.run(wait_for(fail(), timeout))


def test_wait_for_cancels_at_the_timeout_and_waits_for_the_end() -> None:
    """The cleanup of the cancelled awaitable runs first; a result that it returns nevertheless is not lost."""
    events: list[str] = []

    async def clean_up() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            events.append("cleaned up")

    async def ignore_cancellation() -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return "late"
        return "never"

    with pytest.raises(asyncio.TimeoutError):
        virtual_time.run(wait_for(clean_up(), 10))
    assert events == ["cleaned up"]
    assert virtual_time.run(wait_for(ignore_cancellation(), 10)) == "late"


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("fails", [False, True])
def test_wait_for_loses_no_cancellation(turns: int, fails: bool) -> None:
    """A cancellation may arrive any number of turns of the loop after the result."""

    async def run() -> None:
        inner = asyncio.get_running_loop().create_future()

        async def wait() -> None:
            await inner

        waiter = asyncio.create_task(wait_for(wait(), 60))
        await asyncio.sleep(1)
        inner.set_exception(ValueError()) if fails else inner.set_result(None)
        for _ in range(turns):
            await asyncio.sleep(0)
        was_cancelled = waiter.cancel()
        await asyncio.wait({waiter})
        assert waiter.cancelled() == was_cancelled
        assert was_cancelled or bool(waiter.exception()) == fails

    virtual_time.run(run())
