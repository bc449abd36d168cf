"""APIFuture: runs at once, awaitable anywhere, kept results, time-outs and cancellation."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, loop_threads, open_client, wait_until
from support.scripted import PATIENCE_S, Gate, ScriptedResponse, ScriptedServer
from tinkerwire._futures.event_loop import LOOP
from tinkerwire._futures.future import APIFuture

T = TypeVar("T")
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def held(server: ScriptedServer) -> Gate:
    """Holds back the results of optimizer steps until it is released."""
    hold = Gate()
    server.on_poll("OptimStep", lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold))
    return hold


def test_it_is_submitted_and_polled_before_anybody_asks(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """An operation nobody waits for reaches the server, and its result is fetched."""
    future = training.optim_step(ADAM)
    server.wait_for(lambda: len(server.polls("OptimStep")) == 1, "the poll")
    assert future.result(PATIENCE_S) is future.result()


def test_two_event_loops_and_threads_get_the_same_object(training: tw.TrainingClient, held: Gate) -> None:
    """Coroutines on two loops and threads that wait together get one result object."""
    future = training.optim_step(ADAM)

    async def wait() -> tw.OptimStepResponse:
        return await future

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(asyncio.run, wait()) for _ in range(2)]
        waiting += [pool.submit(future.result, PATIENCE_S) for _ in range(2)]
        held.release()
        found = [one.result(PATIENCE_S) for one in waiting]
    assert all(one is found[0] for one in found)
    assert future.done()
    assert future.exception() is None
    assert asyncio.run(future.coroutine()) is found[0]


def test_an_error_is_kept(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A failed operation raises the same error to everybody who asks, in threads and coroutines."""
    server.on_poll("OptimStep", lambda _: ScriptedResponse({"error": "no", "category": "user"}))
    future = training.optim_step(ADAM)
    with pytest.raises(tw.RequestFailedError) as first:
        future.result(PATIENCE_S)

    async def wait() -> None:
        await future

    with pytest.raises(tw.RequestFailedError) as second:
        asyncio.run(wait())
    assert first.value is second.value is future.exception()


def test_a_time_out_leaves_it_running(training: tw.TrainingClient, held: Gate) -> None:
    """A wait that times out, in a thread or a coroutine, says so; the result still comes."""
    future = training.optim_step(ADAM)
    with pytest.raises(TimeoutError, match=r"no result within 0\.01 s; the operation goes on"):
        future.result(0.01)
    with pytest.raises(TimeoutError, match="goes on"):
        future.exception(0.01)

    async def wait() -> None:
        await future.result_async(0.01)

    with pytest.raises(TimeoutError, match="goes on"):
        asyncio.run(wait())
    assert not future.done()
    held.release()
    assert future.result(PATIENCE_S) == tw.OptimStepResponse(metrics={})


def test_a_closed_loop_that_waited_disturbs_nobody(
    training: tw.TrainingClient, held: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """When a loop that timed out is closed before the result comes, nothing is logged and the result is there."""
    future = training.optim_step(ADAM)

    async def wait() -> None:
        with pytest.raises(TimeoutError):
            await future.result_async(0.01)

    asyncio.run(wait())
    held.release()
    future.result(PATIENCE_S)
    assert not caplog.records


def test_cancelling_the_waiting_task_cancels_the_operation(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A sample whose await is cancelled gives its place in flight back."""
    server.rules["retrieve_future"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=Gate())
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
    server.wait_for(lambda: server.active["retrieve_future"] == 0, "the poll is given up")
    with pytest.raises(tw.CancelledSubmissionError, match="was cancelled"):
        future.result(PATIENCE_S)


def test_a_future_that_another_cancelled_does_not_cancel_the_waiter(training: tw.TrainingClient, held: Gate) -> None:
    """Who awaits a future that somebody else cancels gets an ordinary error, not a cancellation of its own task."""
    future = training.optim_step(ADAM)
    assert future.cancel()
    assert future.future().cancelled()

    async def wait() -> None:
        await future

    with pytest.raises(tw.CancelledSubmissionError):
        asyncio.run(wait())
    with pytest.raises(tw.CancelledSubmissionError):
        future.result(PATIENCE_S)
    assert isinstance(future.exception(), tw.CancelledSubmissionError)


def test_looking_on_cancels_nothing() -> None:
    """``watch`` that is cancelled leaves the future alone."""
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


def test_blocking_the_clients_own_loop_is_refused(training: tw.TrainingClient, held: Gate) -> None:
    """``result()`` on the loop thread, which could never end, raises at once; for a finished future it works."""
    future = training.optim_step(ADAM)

    async def block() -> None:
        future.result()

    with pytest.raises(RuntimeError, match="await the future instead"):
        LOOP.start(block).result(PATIENCE_S)
    held.release()
    future.result(PATIENCE_S)
    assert LOOP.start(block).result(PATIENCE_S) is None


def test_clients_are_awaitable_too(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Training and sampling clients can be awaited, also by their _async makers, and waited for with a time limit."""

    async def run() -> None:
        training = await client.create_lora_training_client_async("base", rank=4)
        assert isinstance(training, tw.TrainingClient)
        assert await client.create_lora_training_client("base") is not training
        sampling = await training.save_weights_and_get_sampling_client_async()
        assert await sampling is sampling
        assert await sampling.result_async(PATIENCE_S) is sampling
        step = await training.optim_step_async(ADAM)
        assert isinstance(await step, tw.OptimStepResponse)
        output = await training.forward_backward_async([datum()], "cross_entropy")
        assert (await output).metrics == {}

    asyncio.run(run())
    assert client.create_sampling_client(base_model="base").result(PATIENCE_S).sampling_session_id == "sampler1"


def test_the_result_error_of_an_operation_is_no_time_out_of_the_wait(
    server: ScriptedServer, pass_time: Callable[[float], None]
) -> None:
    """An operation that failed by its own deadline shows that error, though it is a TimeoutError as well."""
    server.on_poll("OptimStep", lambda _: ScriptedResponse(hold=Gate()))
    with open_client(server.url, retry=tw.RetryConfig(progress_timeout=50)) as client:
        future = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for(lambda: len(server.polls("OptimStep")) == 1, "the poll")
        pass_time(50)
        with pytest.raises(tw.RequestTimeoutError):
            future.result(PATIENCE_S)


def test_the_loop_thread_counts_its_users() -> None:
    """The thread starts for the first user and ends after the last, whatever happened between."""
    LOOP.acquire()
    first = {t for t in threading.enumerate() if t.name == "tinkerwire-loop"}
    LOOP.acquire()
    LOOP.release()

    async def work() -> str:
        return threading.current_thread().name

    assert LOOP.start(work).result(PATIENCE_S) == "tinkerwire-loop"

    async def stay() -> None:
        await asyncio.Event().wait()

    left = LOOP.start(stay)
    LOOP.release()
    with pytest.raises(concurrent.futures.CancelledError):
        left.result(PATIENCE_S)
    for thread in first:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    with pytest.raises(RuntimeError, match="no client is open"):
        LOOP.start(work)


def test_callbacks_that_would_end_the_process(
    training: tw.TrainingClient, held: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """On the client's own thread they end nothing: others are called, and operations go on."""
    called = threading.Event()

    def leave(_: object) -> None:
        raise SystemExit(3)

    future = training.optim_step(ADAM)
    future.add_done_callback(leave)
    future.add_done_callback(lambda _: called.set())
    raw = training.optim_step(ADAM)
    raw.future().add_done_callback(leave)
    held.release()
    assert called.wait(PATIENCE_S)
    assert raw.result(PATIENCE_S)
    assert training.optim_step(ADAM).result(PATIENCE_S)
    wait_until(lambda: "failed: SystemExit(3)" in caplog.text, "the word in the log")
    # On a thread of the user's it is the user's.
    with pytest.raises(SystemExit):
        future.add_done_callback(leave)


def test_a_close_that_is_waited_for_where_an_operation_is_being_started(server: ScriptedServer) -> None:
    """As by a signal handler that comes in between: the end comes, and soon the thread's, too."""
    with open_client(server.url) as client:
        client.create_lora_training_client("base").result(PATIENCE_S)
        threads = loop_threads()
        with LOOP._lock:
            client.close().result(PATIENCE_S)
    wait_until(lambda: not any(thread.is_alive() for thread in threads), "the thread ends")


def test_a_client_that_is_closed_while_an_operation_is_being_started(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operation is refused as any on a closed client."""
    start = LOOP.start
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(PATIENCE_S)

        def start_late(work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
            monkeypatch.setattr(LOOP, "start", start)
            client.close().result(PATIENCE_S)
            return start(work)

        monkeypatch.setattr(LOOP, "start", start_late)
        with pytest.raises(tw.ClientClosedError):
            training.optim_step(ADAM).result(PATIENCE_S)
