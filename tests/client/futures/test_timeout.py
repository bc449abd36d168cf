"""Waiting with a time limit: results, errors, the end of the time, and cancellations whenever they come."""

from __future__ import annotations

import asyncio

import pytest

from support import virtual_time
from tinkerwire._futures.timeout import wait_for


async def after(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


def test_what_comes_in_time() -> None:
    """The result, and the error; without a limit, too."""

    async def fail() -> None:
        raise ValueError("mine")

    for limit in (10.0, None):
        assert virtual_time.run(wait_for(after(5), limit)) == "done"
        with pytest.raises(ValueError, match="mine"):
            virtual_time.run(wait_for(fail(), limit))


def test_what_does_not() -> None:
    """It is cancelled, and its end waited for; a result that it gives all the same counts."""
    ends: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            ends.append("tidied")

    async def stubborn() -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return "late"
        return "never"

    with pytest.raises(asyncio.TimeoutError):
        virtual_time.run(wait_for(tidy(), 10))
    assert ends == ["tidied"]
    assert virtual_time.run(wait_for(stubborn(), 10)) == "late"


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("fails", [False, True])
def test_no_cancellation_is_lost(turns: int, fails: bool) -> None:
    """However many turns of the loop before or after the result it comes."""

    async def run() -> None:
        inner = asyncio.get_running_loop().create_future()

        async def work() -> None:
            await inner

        waiting = asyncio.create_task(wait_for(work(), 60))
        await asyncio.sleep(1)
        inner.set_exception(ValueError()) if fails else inner.set_result(None)
        for _ in range(turns):
            await asyncio.sleep(0)
        was_cancelled = waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled() == was_cancelled
        assert was_cancelled or bool(waiting.exception()) == fails

    virtual_time.run(run())
