"""Tests of a future's state, progress, callbacks and reprs, and of the log of unretrieved errors."""

from __future__ import annotations

import asyncio
import copy
import gc
import logging
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
FAILED = ScriptedResponse({"error": "no memory", "category": "server"})


async def await_failure(future: tw.APIFuture[Any]) -> None:
    """Await a future that fails."""
    with pytest.raises(tw.TinkerError):
        await future


def test_state_goes_from_pending_to_submitted_to_done(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Once submitted, a future has the request id and the queue's state; the repr shows all of them."""
    submission_gate, result_gate = Gate(), Gate()
    server.rules["optim_step"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=submission_gate
    )
    paused = ScriptedResponse({"queue_state": "paused_capacity", "queue_state_reason": "busy"}, status=408)
    server.on_poll(
        "OptimStep",
        in_order(paused, lambda request: ScriptedResponse(server.healthy_response(request).body, gate=result_gate)),
    )
    future = training.optim_step(ADAM)
    server.wait_for_requests("optim_step")
    assert (future.state, future.request_id, future.queue_state) == ("pending", None, None)
    assert "APIFuture OptimStep: pending for" in repr(future)
    submission_gate.release()
    wait_until(lambda: future.queue_state == "paused_capacity", "the state of the queue")
    assert future.state == "submitted"
    assert future.request_id == server.polls("OptimStep")[0].body["request_id"]
    assert future.queue_state_reason == "busy"
    assert f"OptimStep {future.request_id}: submitted for" in repr(future)
    assert "queue paused_capacity: busy" in repr(future)
    result_gate.release()
    future.result(TEST_TIMEOUT_S)
    assert (future.state, future.queue_state, future.cancelled()) == ("done", None, False)
    assert repr(future) == f"<APIFuture OptimStep {future.request_id}: done>"
    assert future.progress.elapsed_s == future.progress.elapsed_s > 0


def test_state_is_failed_or_cancelled_otherwise(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """State and repr show a failure with the type of the error, and a cancellation."""
    server.on_poll(
        "OptimStep",
        in_order(FAILED, lambda request: ScriptedResponse(server.healthy_response(request).body, gate=Gate())),
    )
    failed = training.optim_step(ADAM)
    assert isinstance(failed.exception(TEST_TIMEOUT_S), tw.RequestFailedError)
    assert failed.state == "failed"
    assert "failed: RequestFailedError" in repr(failed)
    cancelled = training.optim_step(ADAM)
    cancelled.cancel()
    assert cancelled.cancelled()
    assert (cancelled.state, "cancelled" in repr(cancelled)) == ("cancelled", True)


def test_progress_counts_the_requests_of_a_batch(server: ScriptedServer) -> None:
    """The progress of a batch of three requests has their number, their ids and the number of results."""
    gate = Gate()
    polls: list[str] = []

    def rule(request: RecordedRequest) -> ScriptedResponse:
        polls.append(request.body["request_id"])
        return ScriptedResponse(server.healthy_response(request).body, gate=gate if len(polls) > 1 else None)

    server.on_poll("ForwardBackward", rule)
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        future = client.create_lora_training_client("base").forward_backward([datum()] * 3, "cross_entropy")
        wait_until(lambda: future.progress.done == 1 and len(future.progress.request_ids) == 3, "the first result")
        assert future.progress.total == 3
        assert "1 of 3 requests done" in repr(future)
        gate.release()
        future.result(TEST_TIMEOUT_S)
        assert (future.progress.done, future.progress.total) == (3, 3)


def test_callback_receives_the_done_future(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A callback may be added before or after the end of the operation."""
    gate = Gate()
    server.on_poll("OptimStep", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
    future = training.optim_step(ADAM)
    received: list[tw.APIFuture[tw.OptimStepResponse]] = []
    future.on_done(received.append)
    assert not received
    gate.release()
    future.result(TEST_TIMEOUT_S)
    wait_until(lambda: len(received) == 1, "the callback")
    future.add_done_callback(lambda finished: received.append(finished) if finished.result(0) else None)
    assert received == [future, future]


@pytest.mark.parametrize("dropped", ["before the end", "after the end"])
def test_unretrieved_error_is_logged_once(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture, dropped: str
) -> None:
    """The log line has the error, whether the future is dropped while the operation runs or after its failure."""
    gate = Gate()
    server.on_poll("OptimStep", lambda _: ScriptedResponse(FAILED.body, gate=gate))
    future = training.optim_step(ADAM)
    is_done = future.done
    inner = future._future
    if dropped == "after the end":
        gate.release()
        wait_until(is_done, "the failure")
    del future, is_done
    gc.collect()
    gate.release()
    wait_until(lambda: bool(caplog.records), "the log line")
    del inner
    gc.collect()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "OptimStep optim_step/" in record.getMessage()
    assert " failed, and " in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], tw.RequestFailedError)


def release_when_retrieved(future: tw.APIFuture[Any], gate: Gate) -> None:
    """Open the gate once a caller waits for the error of a future, or has retrieved it."""
    record = future._record
    wait_until(lambda: bool(record.waiters) or record.is_error_retrieved, "the retrieval")
    gate.release()


@pytest.mark.parametrize(
    "retrieve",
    [
        lambda future: future.exception(TEST_TIMEOUT_S),
        lambda future: asyncio.run(await_failure(future)),
        lambda future: future.add_done_callback(lambda finished: finished.exception()),
        lambda future: future.future(),
        lambda future: tw.gather([future], return_exceptions=True).result(TEST_TIMEOUT_S),
        lambda future: future.cancel(),
    ],
)
def test_retrieved_error_is_not_logged(
    server: ScriptedServer,
    training: tw.TrainingClient,
    caplog: pytest.LogCaptureFixture,
    retrieve: Callable[[tw.APIFuture[Any]], object],
) -> None:
    """Each way to retrieve the error, and a cancellation, prevents the log line."""
    gate = Gate()
    server.on_poll("OptimStep", lambda _: replace(FAILED, gate=gate))
    future = training.optim_step(ADAM)
    # The operation must not fail before its error is retrieved, and some ways to retrieve it wait for the failure.
    releaser = threading.Thread(target=release_when_retrieved, args=(future, gate))
    releaser.start()
    retrieve(future)
    releaser.join(TEST_TIMEOUT_S)
    wait_until(future.done, "the end")
    training.save_state("a").result(TEST_TIMEOUT_S)
    del future, releaser
    gc.collect()
    assert not caplog.records


def test_operations_that_close_drops_are_logged_once(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """One line names them all, and they are not logged again as unretrieved errors."""
    server.on_poll("Sample", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=Gate()))
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base")
        for _ in range(5):
            sampling.sample(PROMPT, 1, PARAMS)
        server.wait_for(lambda: len(server.polls("Sample")) == 5, "the polls")
    gc.collect()
    (record,) = caplog.records
    assert "5 operations under way dropped: Sample" in record.message


def test_result_may_block_inside_a_running_loop(training: tw.TrainingClient) -> None:
    """A notebook cell runs on a loop; ``result()`` works there, as does awaiting the future on another thread."""

    async def cell() -> tw.OptimStepResponse:
        future = training.optim_step(ADAM)
        blocked = future.result(TEST_TIMEOUT_S)
        nested = await asyncio.to_thread(asyncio.run, future.coroutine())
        assert nested is blocked is await future
        return blocked

    assert asyncio.run(cell()) == tw.OptimStepResponse(metrics={})


def test_reprs_of_clients_name_server_and_object(server: ScriptedServer) -> None:
    """A repr shows the state of the creation without waiting, and does not contain the key."""
    gate = Gate()
    server.rules["create_session"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    with open_client(server.url) as client:
        assert repr(client) == f"<ServiceClient {server.url}, no session so far>"
        training = client.create_lora_training_client("base")
        assert repr(training) == f"<TrainingClient model whose creation is pending at {server.url}>"
        sampling = client.create_sampling_client(base_model="base")
        gate.release()
        training.result(TEST_TIMEOUT_S)
        sampling.result(TEST_TIMEOUT_S)
        assert repr(training) == f"<TrainingClient model m1 at {server.url}>"
        assert repr(sampling) == f"<SamplingClient sampler sampler1 at {server.url}>"
        assert repr(client) == f"<ServiceClient {server.url}, s1>"
        assert repr(client.create_rest_client()) == f"<RestClient {server.url}>"
        server.rules["create_sampling_session"] = lambda _: ScriptedResponse(status=403)
        failed = client.create_sampling_client(base_model="base")
        with pytest.raises(tw.PermissionDeniedError):
            failed.result(TEST_TIMEOUT_S)
        assert repr(failed) == f"<SamplingClient sampler whose creation failed at {server.url}>"
    assert repr(client) == f"<ServiceClient {server.url}, closed>"


def test_pickling_futures_and_clients_raises_with_a_remedy(
    training: tw.TrainingClient, client: tw.ServiceClient
) -> None:
    """Futures and clients cannot be copied or sent to another process; the error names what can be sent."""
    for value, remedy in (
        (training.optim_step(ADAM), r"send its result\(\)"),
        (client, "send a SamplingClient"),
        (training, r"save_state\(\)"),
        (client.create_rest_client(), "create one in the other process"),
    ):
        with pytest.raises(TypeError, match=remedy):
            pickle.dumps(value)
        with pytest.raises(TypeError, match="cannot be pickled"):
            copy.deepcopy(value)
