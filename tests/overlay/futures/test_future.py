"""APIFuture: runs at once, awaitable anywhere, kept results, time-outs and cancellation."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, open_client
from support.scripted import PATIENCE_S, Answer, Hold, Scripted
from tinkerwire.futures.future import APIFuture
from tinkerwire.futures.loop import LOOP

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def held(server: Scripted) -> Hold:
    """Holds back the results of optimizer steps until it is released."""
    hold = Hold()
    server.on_poll("OptimStep", lambda asked: Answer(server.happy(asked).body, hold=hold))
    return hold


def test_it_is_submitted_and_polled_before_anybody_asks(server: Scripted, training: tw.TrainingClient) -> None:
    """An operation nobody waits for reaches the server, and its result is fetched."""
    future = training.optim_step(ADAM)
    server.wait_for(lambda: len(server.polls("OptimStep")) == 1, "the poll")
    assert future.result(PATIENCE_S) is future.result()


def test_two_event_loops_and_threads_get_the_same_object(training: tw.TrainingClient, held: Hold) -> None:
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


def test_an_error_is_kept(server: Scripted, training: tw.TrainingClient) -> None:
    """A failed operation raises the same error to everybody who asks, in threads and coroutines."""
    server.on_poll("OptimStep", lambda _: Answer({"error": "no", "category": "user"}))
    future = training.optim_step(ADAM)
    with pytest.raises(tw.RequestFailedError) as first:
        future.result(PATIENCE_S)

    async def wait() -> None:
        await future

    with pytest.raises(tw.RequestFailedError) as second:
        asyncio.run(wait())
    assert first.value is second.value is future.exception()


def test_a_time_out_leaves_it_running(training: tw.TrainingClient, held: Hold) -> None:
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
    training: tw.TrainingClient, held: Hold, caplog: pytest.LogCaptureFixture
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


def test_cancelling_the_waiting_task_cancels_the_operation(server: Scripted, client: tw.ServiceClient) -> None:
    """A sample whose await is cancelled gives its place in flight back."""
    server.rules["retrieve_future"] = lambda asked: Answer(server.happy(asked).body, hold=Hold())
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


def test_a_future_that_another_cancelled_does_not_cancel_the_waiter(training: tw.TrainingClient, held: Hold) -> None:
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


def test_blocking_the_clients_own_loop_is_refused(training: tw.TrainingClient, held: Hold) -> None:
    """``result()`` on the loop thread, which could never end, raises at once; for a finished future it works."""
    future = training.optim_step(ADAM)

    async def block() -> None:
        future.result()

    with pytest.raises(RuntimeError, match="await the future instead"):
        LOOP.start(block).result(PATIENCE_S)
    held.release()
    future.result(PATIENCE_S)
    assert LOOP.start(block).result(PATIENCE_S) is None


def test_clients_are_awaitable_too(server: Scripted, client: tw.ServiceClient) -> None:
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
    server: Scripted, pass_time: Callable[[float], None]
) -> None:
    """An operation that failed by its own deadline shows that error, though it is a TimeoutError as well."""
    server.on_poll("OptimStep", lambda _: Answer(hold=Hold()))
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
