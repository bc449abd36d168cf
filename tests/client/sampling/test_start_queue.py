"""Samples that wait for a slot: few of them have a task, and each ends as a running one would."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator

import attrs
import pytest

import tinkerwire as tw
from support.clients import FAST, KEY, PARAMS, PROMPT, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer
from tinkerwire._connection.start_queue import MAX_STARTING, StartQueue
from tinkerwire._futures.deadline import Deadline
from tinkerwire._futures.event_loop import LOOP
from tinkerwire._futures.operation_record import OperationRecord
from tinkerwire._transport.backpressure import InFlightLimit

pytestmark = pytest.mark.timeout(120)
SLOTS = 4
SAMPLES = 5 * MAX_STARTING


@pytest.fixture
def gate(server: ScriptedServer) -> Gate:
    """Hold the results of samples until the gate opens."""
    gate = Gate()
    server.on_poll("Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
    return gate


@pytest.fixture
def client(server: ScriptedServer, gate: Gate) -> Iterator[tw.ServiceClient]:
    """Open a client of four samples in flight, whose results the gate holds."""
    with open_client(server.url, retry=attrs.evolve(FAST, max_connections=SLOTS)) as client:
        yield client


def start_samples(sampling: tw.SamplingClient, count: int = SAMPLES) -> list[tw.APIFuture[tw.types.SampleResponse]]:
    """Start samples, and wait until all slots are taken and all others wait."""
    futures = [sampling.sample(PROMPT, 1, PARAMS) for _ in range(count)]
    wait_until(lambda: sampling.load.in_flight == SLOTS, "all slots are taken")
    wait_until(lambda: sampling.load.waiting == count - SLOTS, "all other samples wait")
    return futures


def count_sample_tasks() -> int:
    """Return the number of tasks that run samples."""

    async def count() -> int:
        names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
        return names.count("OperationRunner.run")

    return LOOP.start(count).result(TEST_TIMEOUT_S)


def test_few_waiting_samples_have_a_task(client: tw.ServiceClient, server: ScriptedServer, gate: Gate) -> None:
    """All samples get a result, in the order of their calls, although few have a task at a time."""
    sampling = client.create_sampling_client(base_model="base")
    futures = start_samples(sampling)
    assert count_sample_tasks() == SLOTS + MAX_STARTING
    gate.release()
    for future in futures:
        future.result(TEST_TIMEOUT_S)
    assert [body["seq_id"] for body in server.bodies("asample")] == list(range(SAMPLES))
    wait_until(lambda: sampling.load.in_flight == sampling.load.waiting == 0, "nothing is left")


def test_deadline_of_unstarted_sample_passes(client: tw.ServiceClient, server: ScriptedServer, gate: Gate) -> None:
    """A sample that never starts fails by its own deadline; the others go on."""
    sampling = client.create_sampling_client(base_model="base")
    futures = start_samples(sampling)
    late = [sampling.sample(PROMPT, 1, PARAMS, timeout=timeout) for timeout in (0.5, 0.1, 600)]
    started = time.monotonic()
    for future in late[:2]:
        with pytest.raises(tw.RequestTimeoutError, match="not submitted"):
            future.result(TEST_TIMEOUT_S)
    assert time.monotonic() - started >= 0.4
    assert sampling.load.waiting == SAMPLES - SLOTS + 1
    gate.release()
    for future in [*futures, late[2]]:
        future.result(TEST_TIMEOUT_S)
    assert len(server.bodies("asample")) == SAMPLES + 1


def test_cancelled_unstarted_samples_are_never_sent(
    client: tw.ServiceClient, server: ScriptedServer, gate: Gate
) -> None:
    """Cancelled samples leave the queue at once, and only the others are sent."""
    sampling = client.create_sampling_client(base_model="base")
    futures = start_samples(sampling)
    cancelled = futures[SLOTS + MAX_STARTING :: 2]
    for future in cancelled:
        assert future.cancel()
        assert future.state == "cancelled"
    remaining = SAMPLES - len(cancelled)
    wait_until(lambda: sampling.load.waiting == remaining - SLOTS, "the cancelled samples leave the queue")
    gate.release()
    for future in futures:
        if future not in cancelled:
            future.result(TEST_TIMEOUT_S)
    assert len(server.bodies("asample")) == remaining


def test_close_ends_unstarted_samples(client: tw.ServiceClient) -> None:
    """Every sample fails with ClientClosedError when the client is closed."""
    sampling = client.create_sampling_client(base_model="base")
    futures = start_samples(sampling)
    client.close().result(TEST_TIMEOUT_S)
    for future in futures:
        with pytest.raises(tw.ClientClosedError):
            future.result(TEST_TIMEOUT_S)
    assert sampling.load.waiting == 0


def test_unstarted_samples_keep_dropped_client_open(server: ScriptedServer, gate: Gate) -> None:
    """Samples that wait get their results although nothing but their futures is left."""
    retry = attrs.evolve(FAST, max_connections=SLOTS)
    client = tw.ServiceClient(base_url=server.url, api_key=KEY, retry=retry, wire_version="0.16.1")
    futures = start_samples(client.create_sampling_client(base_model="base"))
    dropped = weakref.ref(client)
    del client
    gc.collect()
    assert dropped() is None
    gate.release()
    assert len([future.result(TEST_TIMEOUT_S) for future in futures]) == SAMPLES


def test_client_does_not_wait_for_creation_of_another(server: ScriptedServer, gate: Gate) -> None:
    """Many samples of a client that is being created leave those of another client alone, within one limit."""
    gate.release()
    creation = Gate()
    healthy = server.healthy_response
    server.rules["create_sampling_session"] = lambda request: (
        ScriptedResponse(healthy(request).body, gate=creation)
        if request.body["base_model"] == "slow"
        else healthy(request)
    )
    with open_client(server.url) as client:
        slow = client.create_sampling_client(base_model="slow")
        slow_futures = [slow.sample(PROMPT, 1, PARAMS) for _ in range(SAMPLES)]
        fast = client.create_sampling_client(base_model="base")
        for future in [fast.sample(PROMPT, 1, PARAMS) for _ in range(SAMPLES)]:
            future.result(TEST_TIMEOUT_S)
        assert not any(future.done() for future in slow_futures)
        creation.release()
        for future in slow_futures:
            future.result(TEST_TIMEOUT_S)


class CancelledAtStart:
    """Operation that another thread cancels at the moment of its start."""

    is_ended = False

    def __init__(self) -> None:
        self.record, self.deadline = OperationRecord(), Deadline(None, "timeout")
        self.starts = 0

    def start(self) -> bool:
        """Count the start, which does not come about."""
        self.starts += 1
        return False

    def time_out(self) -> None:
        """Do nothing."""

    def fail(self, error: Exception) -> None:
        """Do nothing."""


def test_operations_cancelled_at_their_start_take_no_room(client: tw.ServiceClient) -> None:
    """Any number of them leaves the room to others."""
    operations = [CancelledAtStart() for _ in range(2 * MAX_STARTING)]
    limit = InFlightLimit(1)

    async def add_all() -> None:
        queue = StartQueue(limit)
        for operation in operations:
            queue.add(operation)

    LOOP.start(add_all).result(TEST_TIMEOUT_S)
    assert [operation.starts for operation in operations] == [1] * len(operations)
    assert limit.waiting == 0
