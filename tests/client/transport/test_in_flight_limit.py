"""The limit of samples in flight in simulated time: properties that hold for any operations."""

from __future__ import annotations

import asyncio
from collections import Counter

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from support import virtual_time
from tinkerwire._transport.backpressure import InFlightLimit


@attrs.frozen
class Plan:
    """Course of one operation, in seconds of virtual time."""

    arrives: float
    sends: float
    runs: float
    refusals: int
    pause: float
    fate: str
    """ok, fail, or cancel."""
    cancelled_after: float


SECONDS = st.floats(0, 5)
PLANS = st.lists(
    st.builds(
        Plan,
        arrives=SECONDS,
        sends=SECONDS,
        runs=SECONDS,
        refusals=st.integers(0, 3),
        pause=SECONDS,
        fate=st.sampled_from(["ok", "ok", "fail", "cancel"]),
        cancelled_after=SECONDS,
    ),
    max_size=25,
)


class Simulation:
    """Operations going through a limit, and everything that must never happen checked at each step."""

    def __init__(self, limit: InFlightLimit) -> None:
        self.limit = limit
        self.in_flight = 0
        self.sending = 0
        self.paused_until = 0.0
        self.pushed_back_at = -1.0
        self.done = Counter[str]()

    async def operation(self, plan: Plan) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(plan.arrives)
        for turn in range(plan.refusals + 1):
            async with self.limit.slot() as slot:
                if loop.time() > self.pushed_back_at:
                    # In the very instant of a push-back, somebody may have been let in just before it.
                    assert loop.time() >= self.paused_until
                    assert self.in_flight < self.limit.window
                self.in_flight += 1
                self.sending += 1
                assert self.in_flight <= self.limit.ceiling
                assert self.sending <= 3
                try:
                    await asyncio.sleep(plan.sends)
                    if turn < plan.refusals:
                        self.limit.push_back(plan.pause)
                        self.pushed_back_at = loop.time()
                        self.paused_until = max(self.paused_until, loop.time() + plan.pause)
                        continue
                    self.sending -= 1
                    slot.sent()
                    try:
                        await asyncio.sleep(plan.runs)
                        if plan.fate == "fail":
                            raise ValueError
                    finally:
                        self.sending += 1
                finally:
                    self.in_flight -= 1
                    self.sending -= 1
            assert 1 <= self.limit.window <= self.limit.ceiling
        self.done[plan.fate] += 1

    async def run(self, plans: list[Plan]) -> None:
        tasks = [asyncio.create_task(self.operation(plan)) for plan in plans]
        loop = asyncio.get_running_loop()
        for task, plan in zip(tasks, plans, strict=True):
            if plan.fate == "cancel":
                loop.call_later(plan.cancelled_after, task.cancel)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome, plan in zip(outcomes, plans, strict=True):
            expected = {"ok": type(None), "fail": ValueError, "cancel": (asyncio.CancelledError, type(None))}[plan.fate]
            assert isinstance(outcome, expected)  # type: ignore[arg-type]
        assert (self.limit.in_flight, self.limit.waiting, self.limit._sending) == (0, 0, 0)


@given(PLANS, st.one_of(st.none(), st.integers(1, 6)))
@settings(max_examples=80)
def test_limit_holds_for_any_operations(plans: list[Plan], ceiling: int | None) -> None:
    """Never too many in flight, none during a pause, none left waiting, and all slots released."""
    virtual_time.run(Simulation(InFlightLimit(ceiling, sending=3)).run(plans))


def test_slots_are_granted_in_order() -> None:
    """The longest wait comes first; cancelled waits are skipped."""
    order: list[int] = []

    async def operation(limit: InFlightLimit, number: int) -> None:
        async with limit.slot():
            order.append(number)
            await asyncio.sleep(1)

    async def run() -> None:
        limit = InFlightLimit(1)
        tasks = [asyncio.create_task(operation(limit, i)) for i in range(6)]
        await asyncio.sleep(0.5)
        tasks[2].cancel()
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    virtual_time.run(run())
    assert order == [0, 1, 4, 5]


def test_slot_of_cancelled_operation_is_released() -> None:
    """A slot that was just granted to a cancelled operation goes to the next."""

    async def operation(limit: InFlightLimit) -> str:
        async with limit.slot():
            return "done"

    async def run() -> None:
        limit = InFlightLimit(1, sending=1)
        async with limit.slot():
            second, third = asyncio.create_task(operation(limit)), asyncio.create_task(operation(limit))
            await asyncio.sleep(0)
        # The second has its turn by now, and no step to take it.
        second.cancel()
        assert await asyncio.gather(second, third, return_exceptions=True) != ["done", "done"]
        assert await third == "done"
        assert (limit.in_flight, limit.waiting, limit._sending) == (0, 0, 0)

    virtual_time.run(run())


def test_push_back_with_few_in_flight_recovers_fast() -> None:
    """A limit of 100 that is pushed back with one sample in flight is back at half of it after as many successes."""

    async def run() -> float:
        limit = InFlightLimit(100)
        async with limit.slot():
            limit.push_back(1.0)
        assert limit.window == 1.0
        for _ in range(50):
            async with limit.slot() as slot:
                slot.sent()
        return limit.window

    assert 50.0 <= virtual_time.run(run()) < 60.0


def test_window_halves_once_per_pause_and_recovers() -> None:
    """Further push-backs in the pause do not count; successes restore the ceiling."""

    async def success(limit: InFlightLimit) -> None:
        async with limit.slot() as slot:
            slot.sent()

    async def run() -> list[float]:
        limit = InFlightLimit(100, sending=100)
        windows = []
        async with limit.slot():
            for _ in range(99):
                limit.in_flight += 1
            for _ in range(10):
                limit.push_back(1.0)
            windows.append(limit.window)
            await asyncio.sleep(1.0)
            limit.push_back(1.0)
            windows.append(limit.window)
            limit.in_flight -= 99
        await asyncio.sleep(2.0)
        for _ in range(30):
            await success(limit)
        windows.append(limit.window)
        for _ in range(20_000):
            await success(limit)
        return [*windows, limit.window]

    halved, quartered, later, at_last = virtual_time.run(run())
    assert (halved, quartered, at_last) == (50.0, 25.0, 100.0)
    assert 25.0 < later < 100.0
