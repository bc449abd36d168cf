"""Tests of batched polling in virtual time: waits, completions and acknowledgements of a scripted connection."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

import tinkerwire as tw
from support.virtual_time import run
from tinkerwire._polling import batched_poller
from tinkerwire._polling.batched_poller import COMPLETION_SILENCE_S, BatchedPoller
from tinkerwire_base.errors import ResponseInfo, status_error
from tinkerwire_generated import models


class ScriptedConnection:
    """Connection whose batched polls take a second each and return what the test has finished."""

    closed = False

    def __init__(self) -> None:
        self.polls: list[models.FuturesRetrieveRequest] = []
        self.poll_times: list[float] = []
        self.cursor = 0
        self.timeouts: list[float] = []
        self.finished: list[str] = []
        self.errors: list[Exception] = []
        self.warnings: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.operations = SimpleNamespace(spawn=self._spawn)
        self.warning_texts: list[str] = []
        self.throttled_log = SimpleNamespace(warn=self._warn)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self.tasks.append(task)
        return task

    def _warn(self, key: str, text: str, error: Exception) -> None:
        self.warnings.append(key)
        self.warning_texts.append(text % error)

    async def call(self, call: Any, traffic: object, *, retry: object, timeout_s: float) -> Any:
        self.polls.append(call.body)
        self.poll_times.append(asyncio.get_running_loop().time())
        self.timeouts.append(timeout_s)
        await asyncio.sleep(1)
        if self.errors:
            raise self.errors.pop(0)
        finished, self.finished = self.finished, []
        completions = [SimpleNamespace(request_id=name) for name in finished]
        self.cursor += len(completions)
        return SimpleNamespace(cursor=self.cursor, completions=completions)


def run_check(
    check: Callable[[ScriptedConnection, BatchedPoller], Coroutine[Any, Any, None]], *, with_ids: bool = True
) -> None:
    """Run a check with a new poller in virtual time."""

    async def create_and_check() -> None:
        connection = ScriptedConnection()
        policy = tw.RetryConfig(retry_delay_base=1.0, jitter_factor=0.0)
        target: Any = connection
        await check(connection, BatchedPoller(target, policy, "sampler1", 3, with_ids=with_ids))
        connection.errors.clear()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(10)

    run(create_and_check())


def list_fetched(connection: ScriptedConnection) -> list[list[str]]:
    """Return the fetched samples that each poll names."""
    return [list(poll.retrieved_request_ids or []) for poll in connection.polls]


def test_poll_wakes_the_finished_samples_only() -> None:
    """The others wait for the next polls, which are sent while somebody waits."""

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        waits = {name: asyncio.ensure_future(poller.wait_until_finished(name)) for name in ("a", "b")}
        await asyncio.sleep(0.5)
        assert len(connection.polls) == 1
        connection.finished = ["b"]
        await asyncio.sleep(1)
        assert (waits["a"].done(), waits["b"].done()) == (False, True)
        connection.finished = ["a"]
        await waits["a"]
        number = len(connection.polls)
        await asyncio.sleep(100)
        # One more poll acknowledges the cursor.
        assert len(connection.polls) == number + 1
        assert connection.polls[-1].timeout == 0.0
        assert connection.polls[0].target.cloned_sampler_id == 3

    run_check(check)


def test_early_completion_ends_the_wait_at_once() -> None:
    """A completion that arrives before its sample waits is kept, and used once."""

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        first = asyncio.ensure_future(poller.wait_until_finished("a"))
        connection.finished = ["early", "a"]
        await first
        number = len(connection.polls)
        await poller.wait_until_finished("early")
        assert len(connection.polls) == number
        again = asyncio.ensure_future(poller.wait_until_finished("early"))
        await asyncio.sleep(5)
        assert not again.done()

    run_check(check)


def test_oldest_early_completions_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the latest ones are kept, so that cancelled samples take no memory."""
    monkeypatch.setattr(batched_poller, "MAX_EARLY_COMPLETIONS", 2)

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        connection.finished = ["x", "y", "z", "a"]
        await poller.wait_until_finished("a")
        waits = [asyncio.ensure_future(poller.wait_until_finished(name)) for name in ("x", "y", "z")]
        await asyncio.sleep(0.5)
        assert [wait.done() for wait in waits] == [False, True, True]

    run_check(check)


def test_silent_sample_is_released_after_its_time() -> None:
    """Without a completion, it is polled separately after five minutes."""

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        await poller.wait_until_finished("a")
        assert asyncio.get_running_loop().time() == COMPLETION_SILENCE_S
        await asyncio.sleep(10)
        number = len(connection.polls)
        await asyncio.sleep(100)
        assert len(connection.polls) == number

    run_check(check)


def test_fetched_samples_are_named_until_a_poll_succeeds() -> None:
    """A failed poll keeps them for the next one, and each is named once more at most."""

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        waiting = asyncio.ensure_future(poller.wait_until_finished("a"))
        await asyncio.sleep(0.5)
        poller.mark_fetched("c")
        poller.mark_fetched("b")
        connection.errors = [tw.InternalServerError("x", response=ResponseInfo(status_code=500))]
        await asyncio.sleep(10)
        connection.finished = ["a"]
        await waiting
        named = [ids for ids in list_fetched(connection) if ids]
        assert named[0] == ["b", "c"]
        assert named.count(["b", "c"]) == 1
        assert not poller.is_disabled

    run_check(check)


def test_acknowledgement_needs_no_waiting_sample() -> None:
    """After a second without another sample, a request of its own names the fetched samples."""

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        poller.mark_fetched("a")
        await asyncio.sleep(0.9)
        assert not connection.polls
        await asyncio.sleep(5)
        assert list_fetched(connection)[0] == ["a"]
        assert connection.polls[0].timeout == 0.0
        assert connection.timeouts[0] == 5.0

    run_check(check)


def test_failed_acknowledgement_is_logged_and_repeated_by_the_next_poll() -> None:
    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        connection.errors = [status_error(500)("down", response=ResponseInfo(status_code=500))]
        poller.mark_fetched("a")
        await asyncio.sleep(5)
        assert list_fetched(connection) == [["a"]]
        assert connection.warning_texts == ["acknowledging samples failed; the next poll acknowledges them again: down"]
        poller.mark_fetched("b")
        await asyncio.sleep(5)
        assert list_fetched(connection)[1] == ["a", "b"]

    run_check(check)


def test_server_without_ids_gets_none() -> None:
    """The cursor alone acknowledges results there."""

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        poller.mark_fetched("a")
        await asyncio.sleep(5)
        assert not connection.polls

    run_check(check, with_ids=False)


@pytest.mark.parametrize(("status", "polls"), [(400, 4), (500, 6), (404, 1)])
def test_repeated_errors_release_all_samples(status: int, polls: int) -> None:
    """Final errors, and too many transient ones, let each sample be polled separately; a 500 is transient."""

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        connection.errors = [status_error(status)("x", response=ResponseInfo(status_code=status)) for _ in range(50)]
        await asyncio.gather(*(poller.wait_until_finished(name) for name in "abc"))
        assert len(connection.polls) == polls
        assert connection.warnings == ["retrieve_futures"]
        assert poller.is_disabled is (status != 500)
        if poller.is_disabled:
            await poller.wait_until_finished("d")
            poller.mark_fetched("d")
            await asyncio.sleep(10)
            assert len(connection.polls) == polls

    run_check(check)


def test_empty_responses_lengthen_the_pause() -> None:
    """The pauses double up to a second; a completion starts them anew."""

    async def check(connection: ScriptedConnection, poller: BatchedPoller) -> None:
        waiting = asyncio.ensure_future(poller.wait_until_finished("a"))
        await asyncio.sleep(12)
        pauses = [later - earlier - 1 for earlier, later in itertools.pairwise(connection.poll_times[:8])]
        assert pauses == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0])
        assert not waiting.done()

    run_check(check)
