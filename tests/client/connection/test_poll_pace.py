"""The pace of polls for samples: it follows what a server can answer, and lets polls through that are held."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import virtual_time
from support.clients import PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._connection import poll_pace
from tinkerwire._connection.poll_pace import PollPace
from tinkerwire._transport.backpressure import CONNECTIONS, Traffic


class SlowServer:
    """Server that answers a number of requests in a second, one after the other, and holds none."""

    def __init__(self, requests_per_s: float) -> None:
        self._request_s = 1 / requests_per_s
        self._idle_at = 0.0

    async def answer(self) -> float:
        """Answer a request, and return the seconds that it took."""
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        self._idle_at = max(sent_at, self._idle_at) + self._request_s
        await asyncio.sleep(self._idle_at - sent_at)
        return loop.time() - sent_at


@pytest.mark.parametrize("requests_per_s", [20, 300])
def test_polls_leave_a_slow_server_time_for_new_samples(requests_per_s: int) -> None:
    """With 2,000 samples to poll, at least one in six requests that a slow server answers is one for a new sample."""
    submitted = 0

    async def run() -> None:
        nonlocal submitted
        pace, server = PollPace(), SlowServer(requests_per_s)

        async def poll() -> None:
            while True:
                async with pace.turn():
                    await server.answer()

        async def submit() -> None:
            nonlocal submitted
            while True:
                pace.observe(await server.answer())
                submitted += 1

        tasks = [asyncio.ensure_future(submit()) for _ in range(CONNECTIONS[Traffic.SAMPLING])]
        await asyncio.sleep(100)
        tasks += [asyncio.ensure_future(poll()) for _ in range(2000)]
        await asyncio.sleep(400)
        submitted = 0
        await asyncio.sleep(100)
        for task in tasks:
            task.cancel()

    virtual_time.run(run())
    assert submitted >= requests_per_s * 100 / 6


def test_held_polls_give_their_turns_back() -> None:
    """A server that starts to hold polls while others wait for their turns gets them all."""

    async def run() -> int:
        pace, sent = PollPace(), 0
        pace.observe(0.001)

        async def poll() -> None:
            nonlocal sent
            async with pace.turn():
                sent += 1
                await asyncio.sleep(3600)

        tasks = [asyncio.ensure_future(poll()) for _ in range(1000)]
        await asyncio.sleep(60)
        for task in tasks:
            task.cancel()
        return sent

    assert virtual_time.run(run()) == 1000


def test_turns_come_in_order_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls that are cancelled before, in and after their turns leave the turns to the others."""
    monkeypatch.setattr(PollPace, "_max_taken", 2)

    @given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 0.05), st.floats(0, 6)), min_size=1, max_size=30))
    def check(polls: list[tuple[float, float, float]]) -> None:
        begun: list[int] = []

        async def run() -> None:
            pace, active = PollPace(), 0
            ends: list[bool] = []

            async def poll(number: int, arrives: float, takes: float) -> None:
                nonlocal active
                await asyncio.sleep(arrives)
                async with pace.turn():
                    begun.append(number)
                    active += 1
                    assert active <= 2
                    try:
                        await asyncio.sleep(takes)
                    finally:
                        active -= 1
                ends.append(True)

            tasks = []
            for number, (arrives, takes, cancelled_at) in enumerate(polls):
                tasks.append(asyncio.ensure_future(poll(number, arrives, takes)))
                asyncio.get_running_loop().call_later(cancelled_at, tasks[-1].cancel)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(result is None or isinstance(result, asyncio.CancelledError) for result in results)
            assert (pace._taken, active) == (0, 0)
            assert not [place for place in pace._queue if not place.done()]

        virtual_time.run(run())
        arrivals = [polls[number][0] for number in begun]
        assert arrivals == sorted(arrivals)

    check()


@pytest.mark.parametrize(
    ("responses", "poll_s", "is_slow"),
    [([0.01] * 100, 1.5, False), ([1.0] * 100, 1.5, True), ([1.0] * 100 + [0.01], 1.5, False), ([], 1.5, False)],
    ids=["fast", "slow", "slow until now", "unknown"],
)
def test_polls_are_slow_if_other_requests_are(responses: list[float], poll_s: float, is_slow: bool) -> None:
    """A poll that takes no longer than other requests usually do is not held."""
    pace = PollPace()
    for seconds in responses:
        pace.observe(seconds)
    assert pace.is_slow(poll_s) is is_slow


def test_one_slow_response_does_not_make_a_server_slow() -> None:
    """Polls that a server holds count as held even after a single slow response."""
    pace = PollPace()
    pace.observe(0.01)
    pace.observe(5.0)
    assert not pace.is_slow(1.0)


def test_polls_of_samples_take_turns_if_the_server_does_not_hold_them(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a response 408 at once, no more polls than there are turns wait for their responses."""
    monkeypatch.setattr(PollPace, "_max_taken", 2)
    monkeypatch.setattr(poll_pace, "MIN_TURN_S", 300.0)
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        server.on_poll("Sample", in_order(ScriptedResponse(status=408), server.healthy_response))
        sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        late_s = 0.05
        server.on_poll(
            "Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, delay_s=late_s)
        )
        for future in [sampling.sample(PROMPT, 1, PARAMS) for _ in range(10)]:
            future.result(TEST_TIMEOUT_S)
    times = [request.time for request in server.polls("Sample")][2:]
    assert len(times) == 10
    assert all(later - earlier >= late_s for earlier, later in zip(times, times[2:], strict=False))


def test_polls_that_the_server_holds_take_no_turns(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has not shown that it does not hold polls gets those of all samples in flight at once."""
    monkeypatch.setattr(PollPace, "_max_taken", 2)
    monkeypatch.setattr(poll_pace, "MIN_TURN_S", 300.0)
    gate = Gate()
    server.on_poll("Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(10)]
        server.wait_for(lambda: len(server.polls("Sample")) == 10, "the polls of all samples")
        gate.release()
        for future in futures:
            future.result(TEST_TIMEOUT_S)
