"""The queue of operations by itself: turns, seq_ids and the state that a waiting operation shows."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from support.scripted import (
    TEST_TIMEOUT_S,
)
from tinkerwire._futures.operation_record import OperationRecord, set_current_operation
from tinkerwire._training.operation_queue import OperationQueue, Ticket

pytestmark = pytest.mark.timeout(60)


@given(st.lists(st.sampled_from(["send", "refuse", "cancel"]), max_size=30))
def test_turns_and_seq_ids_are_consecutive(outcomes: list[str]) -> None:
    """With any mix of sent, rejected and cancelled operations, turns are in order and seq_ids consecutive."""
    sent: list[tuple[int, int]] = []

    async def operation(queue: OperationQueue, position: int, outcome: str) -> None:
        async with queue.acquire(queue.enqueue()):
            number = queue.allocate_seq_id()
            await asyncio.sleep(0)
            if outcome == "refuse":
                queue.release_seq_id(number)
            else:
                sent.append((position, number))

    async def run() -> None:
        queue = OperationQueue()
        tasks = [asyncio.create_task(operation(queue, i, outcome)) for i, outcome in enumerate(outcomes)]
        await asyncio.sleep(0)
        for task, outcome in zip(tasks, outcomes, strict=True):
            if outcome == "cancel" and task is not tasks[0]:
                task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), TEST_TIMEOUT_S)

    asyncio.run(run())
    assert [position for position, _ in sent] == sorted(position for position, _ in sent)
    assert [number for _, number in sent] == list(range(1, len(sent) + 1))


def test_seq_ids_follow_what_the_server_may_expect() -> None:
    """A rejected seq_id may have been counted, and an uncertain one may not have arrived."""
    queue = OperationQueue()
    assert queue.is_settled
    assert [queue.allocate_seq_id() for _ in range(3)] == [1, 2, 3]
    assert queue.sent == 3
    assert [queue.fallback_seq_id(number) for number in range(5)] == [None] * 5
    queue.release_seq_id(3)
    assert (queue.next_seq_id, queue.is_settled) == (3, False)
    assert [queue.fallback_seq_id(number) for number in (2, 3, 4)] == [None, 4, None]
    queue = OperationQueue()
    number = queue.allocate_seq_id()
    queue.mark_uncertain(number)
    assert (queue.next_seq_id, queue.is_settled) == (2, False)
    assert [queue.fallback_seq_id(number) for number in (1, 2, 3)] == [None, 1, None]


def test_late_answer_does_not_undo_a_newer_seq_id() -> None:
    """The expected seq_id of a request is used unless a later request has set one."""
    queue = OperationQueue()
    queue.allocate_seq_id()
    first = queue.sent
    queue.allocate_seq_id()
    second = queue.sent
    queue.mark_uncertain(2)
    assert queue.set_next(7, second)
    assert (queue.next_seq_id, queue.is_settled) == (7, False)
    assert queue.fallback_seq_id(3) is None
    assert not queue.set_next(9, second)
    assert not queue.set_next(9, first)
    assert queue.next_seq_id == 7
    assert queue.allocate_seq_id() == 7
    queue.release_seq_id(7)
    assert queue.set_next(5, queue.sent)
    assert queue.allocate_seq_id() == 5
    assert queue.fallback_seq_id(7) is None


def test_operations_started_before_an_error_is_known_are_rejected() -> None:
    """Those behind the failed operation raise until its error is retrieved; those before and after run."""

    async def run() -> list[str]:
        queue = OperationQueue()
        tickets = [queue.enqueue() for _ in range(3)]
        outcomes = []

        async def take_turn(ticket: Ticket) -> None:
            try:
                async with queue.acquire(ticket):
                    outcomes.append("runs")
            except tw.PrecedingOperationError as error:
                assert isinstance(error.__cause__, ValueError)
                assert "load before it failed: ValueError('no such checkpoint')" in str(error)
                outcomes.append("rejected")

        record = OperationRecord("load")
        set_current_operation(record)
        async with queue.acquire(tickets[0]):
            queue.reject_queued(tickets[0], ValueError("no such checkpoint"))
        for ticket in (*tickets, queue.enqueue()):
            if ticket is tickets[0]:
                continue
            await take_turn(ticket)
        record.is_error_retrieved = True
        await take_turn(queue.enqueue())
        return outcomes

    assert asyncio.run(run()) == ["rejected", "rejected", "rejected", "runs"]


def test_waiting_operation_shows_its_queue_until_its_turn() -> None:
    """While it waits for a turn, its record has the queue; a cancelled wait does not free the turns before it."""

    async def run() -> None:
        queue = OperationQueue()
        first, second, third = (queue.enqueue() for _ in range(3))
        records = []

        async def take_turn(ticket: Ticket) -> None:
            record = OperationRecord("step")
            records.append(record)
            set_current_operation(record)
            async with queue.acquire(ticket):
                assert record.queue is None

        waiting = [asyncio.create_task(take_turn(ticket)) for ticket in (second, third)]
        await asyncio.sleep(0)
        assert [record.queue for record in records] == [queue, queue]
        waiting[0].cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiting[0].done()
        assert not waiting[1].done()
        async with queue.acquire(first):
            await asyncio.sleep(0)
            assert not waiting[1].done()
        await asyncio.wait_for(waiting[1], TEST_TIMEOUT_S)

    asyncio.run(run())
