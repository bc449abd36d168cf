"""Tests of futures: created at once, polled until they end, and kept afterwards."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from support.server_fixtures import BatchFactory, Caller, Clock, ServerFactory
from tinkerwire._server.engine import LoraModel
from tinkerwire._server.handlers import HANDLERS
from tinkerwire.local import RetentionPolicy

NANO = "tinkerwire/byte-nano"


def test_long_poll_returns_when_the_result_is_ready(call: Caller, gate: threading.Event, batch: BatchFactory) -> None:
    """A waiting poll returns at the end of the work, long before its maximum wait (10 s)."""
    request_id = call.submit("forward", {"model_id": call.create_model(), "forward_input": batch()})

    async def poll() -> float:
        waiting = asyncio.create_task(call.send("POST", "retrieve_future", {"request_id": request_id}))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        opened = time.monotonic()
        gate.set()
        assert (await waiting).status == 200
        return time.monotonic() - opened

    assert asyncio.run(poll()) < 9


def test_poll_beyond_its_maximum_wait_is_408(serve: ServerFactory, gate: threading.Event, batch: BatchFactory) -> None:
    """The response has the queue state; the next poll continues to wait."""
    call = serve(long_poll_s=0.1)
    request_id = call.submit("forward", {"model_id": call.create_model(), "forward_input": batch()})
    started = time.monotonic()
    reply = call.post("retrieve_future", {"request_id": request_id})
    assert 0.09 < time.monotonic() - started < 15
    assert (reply.status, reply.body) == (408, {"type": "try_again", "request_id": request_id, "queue_state": "active"})
    gate.set()
    while (reply := call.post("retrieve_future", {"request_id": request_id})).status == 408:
        assert time.monotonic() - started < 30
    assert "metrics" in reply.body


def test_busy_workers_do_not_block_the_event_loop(call: Caller, gate: threading.Event, batch: BatchFactory) -> None:
    """The server handles requests while every worker is busy (for 20 s unless the test releases it)."""
    call.submit("forward", {"model_id": call.create_model(), "forward_input": batch()})
    started = time.monotonic()
    for _ in range(20):
        assert call("GET", "healthz").status == 200
    assert time.monotonic() - started < 15


def test_result_can_be_fetched_repeatedly(call: Caller) -> None:
    """A lost response costs nothing: the result is still stored."""
    request_id = call.submit("save_weights", {"model_id": call.create_model()})
    assert call.result(request_id) == call.result(request_id)


def test_unknown_future_is_404(call: Caller) -> None:
    """Ids that the server never created do not exist, regardless of their form."""
    future_id = call.submit("optim_step", {"model_id": call.create_model(), "adam_params": {}})
    prefix, _, number = future_id.rpartition("-")
    for request_id in (
        "",
        "nonsense",
        f"{prefix}-{int(number) + 1}",
        f"{prefix}-0",
        f"{prefix}-" + "9" * 40,
        f"{prefix}-²",
    ):
        assert call.post("retrieve_future", {"request_id": request_id}).status == 404


def test_expired_result_is_410(serve: ServerFactory, clock: Clock) -> None:
    """An expired result is distinguished from an unknown one."""
    call = serve(clock=clock, retention=RetentionPolicy(seconds=60))
    request_id = call.submit("optim_step", {"model_id": call.create_model(), "adam_params": {}})
    call.result(request_id)
    clock.now += 59
    call.result(request_id)
    clock.now += 2
    assert call.post("retrieve_future", {"request_id": request_id}).status == 410


def test_oldest_result_beyond_the_limit_is_dropped(serve: ServerFactory) -> None:
    """Beyond the maximum number, the oldest result is dropped."""
    call = serve(retention=RetentionPolicy(results=2))
    model_id = call.create_model()
    ids = [call.submit("optim_step", {"model_id": model_id, "adam_params": {}}) for _ in range(3)]
    call.result(ids[2])
    assert [call.post("retrieve_future", {"request_id": request_id}).status for request_id in ids] == [410, 200, 200]


def test_fetched_results_are_dropped_first(serve: ServerFactory) -> None:
    """Fetched results are dropped before the others if memory is short."""
    call = serve(retention=RetentionPolicy(fetched_bytes=1))
    model_id = call.create_model()
    ids = [call.submit("optim_step", {"model_id": model_id, "adam_params": {}}) for _ in range(3)]
    call.result(ids[1])
    call.result(ids[2])
    statuses = {
        request_id: call.post("retrieve_future", {"request_id": request_id}).status for request_id in (ids[1], ids[0])
    }
    assert statuses == {ids[1]: 410, ids[0]: 200}


def test_server_error_is_logged_and_fails_the_future(
    call: Caller, batch: BatchFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The future fails with category server, and the log has the traceback."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    model_id = call.create_model()
    monkeypatch.setattr(LoraModel, "forward", broken)
    with caplog.at_level(logging.ERROR):
        failed = call.run("forward", {"model_id": model_id, "forward_input": batch()})
    assert failed["category"] == "server"
    assert "ZeroDivisionError" in failed["error"]
    assert "Traceback" in caplog.text


def test_close_fails_waiting_polls(serve: ServerFactory, gate: threading.Event, batch: BatchFactory) -> None:
    """A waiting poll returns a failure, and later requests are 503."""
    call = serve(long_poll_s=30)
    request_id = call.submit("forward", {"model_id": call.create_model(), "forward_input": batch()})

    async def poll() -> Any:
        waiting = asyncio.create_task(call.send("POST", "retrieve_future", {"request_id": request_id}))
        await asyncio.sleep(0.05)
        gate.set()
        await asyncio.to_thread(call.server.close)
        return await waiting

    assert asyncio.run(poll()).status == 200
    assert call("GET", "healthz").status == 503


def test_close_ends_futures_of_requests_in_progress(serve: ServerFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is accepted during close ends with a failure; later requests are rejected."""
    call = serve()
    handle_sample = HANDLERS["asample"]
    started, closing = threading.Event(), threading.Event()

    def slow(state: Any, request: Any) -> Any:
        started.set()
        assert closing.wait(20)
        time.sleep(0.2)
        return handle_sample(state, request)

    def close() -> None:
        assert started.wait(20)
        closing.set()
        call.server.close()

    monkeypatch.setitem(HANDLERS, "asample", slow)  # type: ignore[arg-type]
    sample_request = {"base_model": NANO, "prompt": {"chunks": [{"tokens": [1]}]}, "sampling_params": {"max_tokens": 1}}
    thread = threading.Thread(target=close)
    thread.start()
    accepted = call.post("asample", sample_request)
    thread.join()
    futures = call.server._state.futures
    assert (accepted.status, futures.pending_count) == (200, 0)
    assert futures.get(accepted.body["request_id"]).result is not None
    assert call.post("asample", sample_request).status == 503


def test_many_polls_of_one_result_all_return(call: Caller, gate: threading.Event, batch: BatchFactory) -> None:
    """Hundreds of polls of one result return."""
    request_id = call.submit("forward", {"model_id": call.create_model(), "forward_input": batch()})

    async def poll() -> list[Any]:
        polls = [call.send("POST", "retrieve_future", {"request_id": request_id}) for _ in range(300)]
        asyncio.get_running_loop().call_later(0.1, gate.set)
        return await asyncio.gather(*polls)

    assert {reply.status for reply in asyncio.run(poll())} == {200}
