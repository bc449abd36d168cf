"""What a future tells of its operation while it runs, to who asks, who listens and who forgot it."""

from __future__ import annotations

import asyncio
import copy
import gc
import logging
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, open_client, wait_until
from support.scripted import PATIENCE_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._connection import throttled_log
from tinkerwire._futures import operation_record

pytestmark = pytest.mark.timeout(60)
FAILED = ScriptedResponse({"error": "no memory", "category": "server"})


async def outcome(future: tw.APIFuture[Any]) -> None:
    """Await a future that fails."""
    with pytest.raises(tw.TinkerError):
        await future


def test_the_way_of_an_operation(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """pending, submitted with id and queue, done; the repr says the same."""
    taken, kept = Gate(), Gate()
    server.rules["optim_step"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=taken)
    paused = ScriptedResponse({"queue_state": "paused_capacity", "queue_state_reason": "busy"}, status=408)
    server.on_poll(
        "OptimStep", in_order(paused, lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=kept))
    )
    future = training.optim_step(ADAM)
    server.wait_for_requests("optim_step")
    assert (future.state, future.request_id, future.queue_state) == ("pending", None, None)
    assert "APIFuture OptimStep: pending for" in repr(future)
    taken.release()
    wait_until(lambda: future.queue_state == "paused_capacity", "the word of the queue")
    assert future.state == "submitted"
    assert future.request_id == server.polls("OptimStep")[0].body["request_id"]
    assert future.queue_state_reason == "busy"
    assert f"OptimStep {future.request_id}: submitted for" in repr(future)
    assert "queue paused_capacity: busy" in repr(future)
    kept.release()
    future.result(PATIENCE_S)
    assert (future.state, future.queue_state, future.cancelled()) == ("done", None, False)
    assert repr(future) == f"<APIFuture OptimStep {future.request_id}: done>"
    assert future.progress.elapsed_s == future.progress.elapsed_s > 0


def test_failed_and_cancelled(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The other two ends."""
    server.on_poll(
        "OptimStep", in_order(FAILED, lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=Gate()))
    )
    failed = training.optim_step(ADAM)
    assert isinstance(failed.exception(PATIENCE_S), tw.RequestFailedError)
    assert failed.state == "failed"
    assert "failed: RequestFailedError" in repr(failed)
    cancelled = training.optim_step(ADAM)
    cancelled.cancel()
    assert cancelled.cancelled()
    assert (cancelled.state, "cancelled" in repr(cancelled)) == ("cancelled", True)


def test_the_progress_of_a_large_batch(server: ScriptedServer) -> None:
    """A batch of three requests counts those whose results are there."""
    hold = Gate()
    polls: list[str] = []

    def rule(asked: Any) -> ScriptedResponse:
        polls.append(asked.body["request_id"])
        return ScriptedResponse(server.healthy_response(asked).body, hold=hold if len(polls) > 1 else None)

    server.on_poll("ForwardBackward", rule)
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        future = client.create_lora_training_client("base").forward_backward([datum()] * 3, "cross_entropy")
        wait_until(lambda: future.progress.done == 1 and len(future.progress.request_ids) == 3, "one of three")
        assert future.progress.total == 3
        assert "1 of 3 requests done" in repr(future)
        hold.release()
        future.result(PATIENCE_S)
        assert (future.progress.done, future.progress.total) == (3, 3)


def test_callbacks(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A callback gets the future, done, whether it is added before the end or after it."""
    hold = Gate()
    server.on_poll("OptimStep", lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold))
    future = training.optim_step(ADAM)
    heard: list[tw.APIFuture[tw.OptimStepResponse]] = []
    future.on_done(heard.append)
    assert not heard
    hold.release()
    future.result(PATIENCE_S)
    wait_until(lambda: len(heard) == 1, "the callback")
    future.add_done_callback(lambda done: heard.append(done) if done.result(0) else None)
    assert heard == [future, future]


@pytest.mark.usefixtures("soon")
def test_a_client_with_a_listener(server: ScriptedServer) -> None:
    """The callback of the service hears of every long wait; one that fails takes nothing away."""
    hold = Gate()
    server.on_poll("Sample", lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold))
    heard: list[tw.WaitStatus] = []

    def listen(waiting: tw.WaitStatus) -> None:
        heard.append(waiting)
        raise RuntimeError("mine")

    with open_client(server.url, on_wait=listen) as client:
        future = client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS)
        wait_until(lambda: any(one.request_id for one in heard), "the listener hears of the sample")
        hold.release()
        future.result(PATIENCE_S)
    assert {one.request_type for one in heard if one.request_id == future.request_id} == {"Sample"}


@pytest.mark.parametrize("when", ["before the end", "after the end"])
def test_a_failure_that_nobody_asked_for(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    """It is logged once, with its cause, whether the future is dropped while it runs or when it has failed."""
    hold = Gate()
    server.on_poll("OptimStep", lambda _: ScriptedResponse(FAILED.body, hold=hold))
    future = training.optim_step(ADAM)
    ended = future.done
    inner = future._future
    if when == "after the end":
        hold.release()
        wait_until(ended, "the failure")
    del future, ended
    gc.collect()
    hold.release()
    wait_until(lambda: bool(caplog.records), "the word")
    del inner
    gc.collect()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "OptimStep optim_step/" in record.getMessage()
    assert " failed, and " in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], tw.RequestFailedError)


@pytest.mark.parametrize(
    "ask",
    [
        lambda future: future.exception(PATIENCE_S),
        lambda future: asyncio.run(outcome(future)),
        lambda future: future.add_done_callback(lambda done: done.exception()),
        lambda future: future.future(),
        lambda future: tw.gather([future], return_exceptions=True).result(PATIENCE_S),
        lambda future: future.cancel(),
    ],
)
def test_a_failure_that_somebody_asked_for(
    server: ScriptedServer,
    training: tw.TrainingClient,
    caplog: pytest.LogCaptureFixture,
    ask: Callable[[tw.APIFuture[Any]], object],
) -> None:
    """It is not logged, in whatever way it was asked for."""
    server.on_poll("OptimStep", lambda _: FAILED)
    future = training.optim_step(ADAM)
    ask(future)
    wait_until(future.done, "the end")
    training.save_state("a").result(PATIENCE_S)
    del future
    gc.collect()
    assert not caplog.records


def test_what_close_ends_is_logged_once(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """Operations that end by close are named together, and not logged again as errors that nobody asked for."""
    server.on_poll("Sample", lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=Gate()))
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base")
        for _ in range(5):
            sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for(lambda: len(server.polls("Sample")) == 5, "the polls")
    gc.collect()
    (record,) = caplog.records
    assert "5 operations under way dropped: Sample" in record.message


def test_blocking_inside_a_running_loop_works(training: tw.TrainingClient) -> None:
    """As in a notebook cell: ``result()`` while a loop runs on this thread, and loops inside of loops in threads."""

    async def cell() -> tw.OptimStepResponse:
        future = training.optim_step(ADAM)
        blocked = future.result(PATIENCE_S)
        nested = await asyncio.to_thread(asyncio.run, future.coroutine())
        assert nested is blocked is await future
        return blocked

    assert asyncio.run(cell()) == tw.OptimStepResponse(metrics={})


def test_reprs_of_clients(server: ScriptedServer) -> None:
    """They name the server and what they stand for, without waiting and without the key."""
    hold = Gate()
    server.rules["create_session"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
    with open_client(server.url) as client:
        assert repr(client) == f"<ServiceClient {server.url}, no session so far>"
        training = client.create_lora_training_client("base")
        assert repr(training) == f"<TrainingClient model whose creation is pending at {server.url}>"
        sampling = client.create_sampling_client(base_model="base")
        hold.release()
        training.result(PATIENCE_S), sampling.result(PATIENCE_S)
        assert repr(training) == f"<TrainingClient model m1 at {server.url}>"
        assert repr(sampling) == f"<SamplingClient sampler sampler1 at {server.url}>"
        assert repr(client) == f"<ServiceClient {server.url}, s1>"
        assert repr(client.create_rest_client()) == f"<RestClient {server.url}>"
        server.rules["create_sampling_session"] = lambda _: ScriptedResponse(status=403)
        refused = client.create_sampling_client(base_model="base")
        with pytest.raises(tw.PermissionDeniedError):
            refused.result(PATIENCE_S)
        assert repr(refused) == f"<SamplingClient sampler whose creation failed at {server.url}>"
    assert repr(client) == f"<ServiceClient {server.url}, closed>"


def test_what_cannot_be_pickled_says_what_can(training: tw.TrainingClient, client: tw.ServiceClient) -> None:
    """Futures and clients of this process refuse to be pickled and copied, and name the way out."""
    for thing, way_out in (
        (training.optim_step(ADAM), r"send its result\(\)"),
        (client, "send a SamplingClient"),
        (training, r"save_state\(\)"),
        (client.create_rest_client(), "make one where it is needed"),
    ):
        with pytest.raises(TypeError, match=way_out):
            pickle.dumps(thing)
        with pytest.raises(TypeError, match="cannot be pickled"):
            copy.deepcopy(thing)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said after ten seconds is said at once, and again and again."""
    assert (operation_record.FIRST_WAIT_LOG_S, operation_record.WAIT_LOG_INTERVAL_S) == (10.0, 60.0)
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.05)
    monkeypatch.setattr(operation_record, "WAIT_LOG_INTERVAL_S", 0.02)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", ["create_session", "create_model"])
@pytest.mark.parametrize("is_silent", [True, False])
def test_waiting_for_what_the_server_has_not_taken(server: ScriptedServer, name: str, is_silent: bool) -> None:
    """A wait before there is any request id has its word, too: the listener hears what was sent and what came."""
    hold = Gate()

    def rule(asked: RecordedRequest) -> ScriptedResponse:
        if hold.is_over:
            return server.healthy_response(asked)
        return (
            ScriptedResponse(server.healthy_response(asked).body, hold=hold)
            if is_silent
            else ScriptedResponse({"detail": "on fire"}, status=503)
        )

    server.rules[name] = rule
    reason = f"{name}: no response yet to attempt 1" if is_silent else "on fire"
    heard: list[tw.WaitStatus] = []
    policy = tw.RetryConfig(retry_delay_base=0.1, retry_delay_max=0.1, max_attempts=1000)
    with open_client(server.url, on_wait=heard.append, retry=policy) as client:
        training = client.create_lora_training_client("base")
        wait_until(lambda: any(reason in waiting.reason for waiting in heard), "the reason")
        hold.release()
        training.result(PATIENCE_S)
    assert ("CreateModel", "", "") in {(one.request_type, one.request_id, one.queue_state) for one in heard}


@pytest.mark.usefixtures("soon")
def test_waiting_in_line(
    server: ScriptedServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    pass_time: Callable[[float], None],
) -> None:
    """What waits for an operation before it says so, and that one says what it waits for; at the end, nothing more."""
    monkeypatch.setattr(throttled_log, "WARNING_INTERVAL_S", 0.0)
    words = (
        r"SaveWeights: no result after \d+ s; it waits for the operations before it",
        r"OptimStep: .*/api/v1/optim_step: no response yet to attempt 1",
    )
    hold = Gate()
    server.rules["optim_step"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
    heard: list[tw.WaitStatus] = []
    with caplog.at_level(logging.WARNING, "tinkerwire"), open_client(server.url, on_wait=heard.append) as client:
        training = client.create_lora_training_client("base")
        step, save = training.optim_step(ADAM), training.save_state("a")
        wait_until(lambda: all(re.search(word, caplog.text) for word in words), "both words")
        hold.release()
        step.result(PATIENCE_S)
        save.result(PATIENCE_S)
        number = len(heard)
        pass_time(10.0)
    assert len(heard) == number
    assert {"OptimStep", "SaveWeights"} <= {waiting.request_type for waiting in heard}


@pytest.mark.usefixtures("soon")
def test_waiting_for_a_server_that_is_too_busy(server: ScriptedServer) -> None:
    """A sample that the server does not take says why it is still here."""
    hold = Gate()
    busy = ScriptedResponse({"detail": "all seats taken"}, status=429)
    server.rules["asample"] = lambda asked: server.healthy_response(asked) if hold.is_over else busy
    heard: list[tw.WaitStatus] = []
    with open_client(server.url, on_wait=heard.append) as client:
        sample = client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS)
        wait_until(lambda: any("all seats taken" in waiting.reason for waiting in heard), "the reason")
        hold.release()
        sample.result(PATIENCE_S)
