"""Tests of APIFuture: its start, waiting on threads and event loops, timeouts, cancellation and callbacks."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, loop_threads, open_client, wait_until
from support.optim_steps import make_expired_step_error
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer
from tinkerwire._futures.event_loop import LOOP
from tinkerwire._futures.future import APIFuture
from tinkerwire._futures.operation_record import OperationRecord

T = TypeVar("T")
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def result_gate(server: ScriptedServer) -> Gate:
    """Return a gate that blocks the results of optimizer steps until the test releases it."""
    gate = Gate()
    server.on_poll("OptimStep", lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate))
    return gate


def test_operation_is_submitted_and_polled_without_waiters(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The client fetches the result before the first call of result(), which returns the same object each time."""
    future = training.optim_step(ADAM)
    server.wait_for(lambda: len(server.polls("OptimStep")) == 1, "the poll")
    assert future.result(TEST_TIMEOUT_S) is future.result()


def test_event_loops_and_threads_get_the_same_result(training: tw.TrainingClient, result_gate: Gate) -> None:
    """Coroutines on two loops and two threads that wait at the same time get one result object."""
    future = training.optim_step(ADAM)

    async def wait() -> tw.OptimStepResponse:
        return await future

    with ThreadPoolExecutor(4) as pool:
        waiters = [pool.submit(asyncio.run, wait()) for _ in range(2)]
        waiters += [pool.submit(future.result, TEST_TIMEOUT_S) for _ in range(2)]
        result_gate.release()
        results = [waiter.result(TEST_TIMEOUT_S) for waiter in waiters]
    assert all(result is results[0] for result in results)
    assert future.done()
    assert future.exception() is None
    assert asyncio.run(future.coroutine()) is results[0]


def test_failed_future_raises_the_same_error_every_time(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Threads and coroutines get the same exception object."""
    server.on_poll("OptimStep", lambda _: ScriptedResponse({"error": "no", "category": "user"}))
    future = training.optim_step(ADAM)
    with pytest.raises(tw.RequestFailedError) as first:
        future.result(TEST_TIMEOUT_S)

    async def wait() -> None:
        await future

    with pytest.raises(tw.RequestFailedError) as second:
        asyncio.run(wait())
    assert first.value is second.value is future.exception()


def test_operation_continues_after_a_timeout_of_the_wait(training: tw.TrainingClient, result_gate: Gate) -> None:
    """On a thread or a loop, the wait raises TimeoutError with the limit; the result arrives later."""
    future = training.optim_step(ADAM)
    with pytest.raises(TimeoutError, match=r"no result within 0\.01 s; the operation continues"):
        future.result(0.01)
    with pytest.raises(TimeoutError, match="continues"):
        future.exception(0.01)

    async def wait() -> None:
        await future.result_async(0.01)

    with pytest.raises(TimeoutError, match="continues"):
        asyncio.run(wait())
    assert not future.done()
    result_gate.release()
    assert future.result(TEST_TIMEOUT_S) == tw.OptimStepResponse(metrics={})


def test_result_arrives_after_a_waiting_loop_is_closed(
    training: tw.TrainingClient, result_gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """A loop whose wait timed out may be closed before the result arrives; nothing is logged."""
    future = training.optim_step(ADAM)

    async def wait() -> None:
        with pytest.raises(TimeoutError):
            await future.result_async(0.01)

    asyncio.run(wait())
    result_gate.release()
    future.result(TEST_TIMEOUT_S)
    assert not caplog.records


def test_cancelling_the_waiting_task_cancels_the_operation(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The client stops polling, and the future raises CancelledSubmissionError."""
    server.rules["retrieve_future"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=Gate()
    )
    sampling = client.create_sampling_client(base_model="base")

    async def run() -> APIFuture[tw.SampleResponse]:
        future = sampling.sample(PROMPT, 1, PARAMS)
        task = asyncio.create_task(future.coroutine())
        await asyncio.to_thread(server.wait_for_requests, "retrieve_future")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return future

    future = asyncio.run(run())
    server.wait_for(lambda: server.active["retrieve_future"] == 0, "the poll is cancelled")
    with pytest.raises(tw.CancelledSubmissionError, match="was cancelled"):
        future.result(TEST_TIMEOUT_S)


def test_cancelled_future_does_not_cancel_its_waiters(training: tw.TrainingClient, result_gate: Gate) -> None:
    """A task that awaits a cancelled future gets CancelledSubmissionError, not asyncio.CancelledError."""
    future = training.optim_step(ADAM)
    assert future.cancel()
    assert future.future().cancelled()

    async def wait() -> None:
        await future

    with pytest.raises(tw.CancelledSubmissionError):
        asyncio.run(wait())
    with pytest.raises(tw.CancelledSubmissionError):
        future.result(TEST_TIMEOUT_S)
    assert isinstance(future.exception(), tw.CancelledSubmissionError)


def test_cancelling_watch_does_not_cancel_the_future() -> None:
    """A task in ``watch`` may be cancelled; a later ``watch`` returns the result."""
    inner: Future[int] = Future()
    future = APIFuture(inner)

    async def run() -> None:
        task = asyncio.create_task(future.watch())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert not future.done()
    inner.set_result(7)
    assert asyncio.run(future.watch()) == 7


def test_result_on_the_loop_thread_raises_if_it_would_block(training: tw.TrainingClient, result_gate: Gate) -> None:
    """There, a pending future would deadlock, while a finished future returns its result."""
    future = training.optim_step(ADAM)

    async def block() -> None:
        future.result()

    with pytest.raises(RuntimeError, match="await the future instead"):
        LOOP.start(block).result(TEST_TIMEOUT_S)
    result_gate.release()
    future.result(TEST_TIMEOUT_S)
    assert LOOP.start(block).result(TEST_TIMEOUT_S) is None


def test_clients_are_awaitable(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """``await``, the _async constructors and ``result_async`` return a created training or sampling client."""

    async def run() -> None:
        training = await client.create_lora_training_client_async("base", rank=4)
        assert isinstance(training, tw.TrainingClient)
        assert await client.create_lora_training_client("base") is not training
        sampling = await training.save_weights_and_get_sampling_client_async()
        assert await sampling is sampling
        assert await sampling.result_async(TEST_TIMEOUT_S) is sampling
        step = await training.optim_step_async(ADAM)
        assert isinstance(await step, tw.OptimStepResponse)
        output = await training.forward_backward_async([datum()], "cross_entropy")
        assert (await output).metrics == {}

    asyncio.run(run())
    assert client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S).sampling_session_id == "sampler1"


def test_deadline_of_the_operation_differs_from_timeout_of_the_wait(
    server: ScriptedServer, pass_time: Callable[[float], None]
) -> None:
    """A future that failed at its own deadline raises RequestTimeoutError, which is a TimeoutError as well."""
    assert isinstance(make_expired_step_error(server, ScriptedResponse(gate=Gate()), pass_time), TimeoutError)


def test_loop_thread_runs_from_first_to_last_user() -> None:
    """The thread ends with the last user and cancels pending work; later work raises an error."""
    LOOP.acquire()
    threads = {thread for thread in threading.enumerate() if thread.name == "tinkerwire-loop"}
    LOOP.acquire()
    LOOP.release()

    async def get_thread_name() -> str:
        return threading.current_thread().name

    assert LOOP.start(get_thread_name).result(TEST_TIMEOUT_S) == "tinkerwire-loop"

    async def wait_forever() -> None:
        await asyncio.Event().wait()

    pending = LOOP.start(wait_forever)
    LOOP.release()
    with pytest.raises(concurrent.futures.CancelledError):
        pending.result(TEST_TIMEOUT_S)
    for thread in threads:
        thread.join(TEST_TIMEOUT_S)
        assert not thread.is_alive()
    with pytest.raises(RuntimeError, match="no client is open"):
        LOOP.start(get_thread_name)


def test_system_exit_in_a_callback_does_not_stop_the_client(
    training: tw.TrainingClient, result_gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """On the client's thread the exception is logged, other callbacks run, and operations continue."""
    was_called = threading.Event()

    def exit_process(_: object) -> None:
        raise SystemExit(3)

    future = training.optim_step(ADAM)
    future.add_done_callback(exit_process)
    future.add_done_callback(lambda _: was_called.set())
    second = training.optim_step(ADAM)
    second.future().add_done_callback(exit_process)
    result_gate.release()
    assert was_called.wait(TEST_TIMEOUT_S)
    assert second.result(TEST_TIMEOUT_S)
    assert training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    wait_until(lambda: "failed: SystemExit(3)" in caplog.text, "the exception is logged")
    # A callback that is called on the user's thread raises there.
    with pytest.raises(SystemExit):
        future.add_done_callback(exit_process)


def test_close_ends_while_an_operation_is_started(server: ScriptedServer) -> None:
    """A signal handler may call close() while the interrupted code holds the loop's lock; the thread still ends."""
    with open_client(server.url) as client:
        client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        threads = loop_threads()
        with LOOP._lock:
            client.close().result(TEST_TIMEOUT_S)
    wait_until(lambda: not any(thread.is_alive() for thread in threads), "the client's thread ends")


def test_operation_started_during_close_raises_client_closed(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is that of an operation on a closed client."""
    call = LOOP.call
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)

        def call_after_close(function: Callable[[], object]) -> None:
            monkeypatch.setattr(LOOP, "call", call)
            client.close().result(TEST_TIMEOUT_S)
            call(function)

        monkeypatch.setattr(LOOP, "call", call_after_close)
        with pytest.raises(tw.ClientClosedError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)


def read_table(future: tw.APIFuture[Any]) -> str:
    """Return what a notebook shows of a future."""
    return future._repr_html_()


def test_notebook_shows_the_state_and_the_result() -> None:
    """The table has the state at each time, and then the table of the result."""
    inner: Future[Any] = Future()
    future = tw.APIFuture(inner, OperationRecord("save_state"))
    assert "save_state" in read_table(future) and "pending" in read_table(future)
    inner.set_result(tw.types.SaveWeightsResponse(path="tinker://r/weights/<a>"))
    assert "<caption>SaveWeightsResponse</caption>" in read_table(future)
    assert "tinker://r/weights/&lt;a&gt;" in read_table(future)


def test_notebook_shows_an_error_without_retrieving_it(caplog: pytest.LogCaptureFixture) -> None:
    """The error is escaped and short, and still logged if it is never retrieved."""
    inner: Future[Any] = Future()
    inner.set_exception(ValueError("<b>" + "x" * 1000))
    future = tw.APIFuture(inner)
    table = read_table(future)
    assert "&lt;b&gt;" in table and "<b>" not in table and len(table) < 2000
    del future
    gc.collect()
    assert "its error was never retrieved" in caplog.text
