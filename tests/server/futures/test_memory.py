"""Tests of the memory limits of a long-running server, and of its errors for dropped results."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from support.server_fixtures import BatchFactory, Caller, Clock, ServerFactory
from tinkerwire.local import RetentionPolicy

KIB = 2**10
NANO = "tinkerwire/byte-nano"
SMALL_RETENTION = RetentionPolicy(fetched_bytes=100 * KIB, unfetched_bytes=100 * KIB, request_bytes=100 * KIB)
"""Full after about two hundred requests."""
MAX_BLOCKS = 2.0
"""Blocks of memory that an action may leave behind; one whose result or request is kept leaves more than ten."""


def _measure_growth(
    act: Callable[[int], Awaitable[None]], warm_up: int, count: int, measure: Callable[[], int]
) -> float:
    """Return the average memory growth of an action, after ``warm_up`` actions have filled the tables."""

    async def run() -> float:
        for number in range(warm_up):
            await act(number)
        gc.collect()
        before = measure()
        for number in range(warm_up, warm_up + count):
            await act(number)
        gc.collect()
        return (measure() - before) / count

    return asyncio.run(run())


def _create_sample_request(sampler_id: str, seq_id: int) -> dict[str, Any]:
    return {
        "sampling_session_id": sampler_id,
        "seq_id": seq_id,
        "prompt": {"chunks": [{"tokens": [1]}]},
        "sampling_params": {"max_tokens": 2},
    }


def _step(model_id: str, seq_id: int | None = None) -> dict[str, Any]:
    return {"model_id": model_id, "seq_id": seq_id, "adam_params": {"learning_rate": 0.01}}


async def _submit(call: Caller, path: str, body: Any, key: str) -> str:
    reply = await call.send("POST", path, body, key=key)
    assert reply.status == 200, reply
    request_id: str = reply.body["request_id"]
    return request_id


async def _run(call: Caller, path: str, body: Any, key: str) -> None:
    request_id = await _submit(call, path, body, key)
    reply = await call.send("POST", "retrieve_future", {"request_id": request_id})
    assert reply.status == 200, reply


def _without_contract_check(call: Caller) -> Any:
    """Return the caller without its contract check, for speed."""
    return attrs.evolve(call, checks_contract=False)


@pytest.mark.parametrize("is_fetched", [True, False])
def test_samples_do_not_leak_memory(serve: ServerFactory, is_fetched: bool) -> None:
    """Memory reaches a plateau, with and without clients that fetch the results."""
    call = _without_contract_check(serve(retention=SMALL_RETENTION))
    sampler_id = call.create_sampler()

    async def sample(number: int) -> None:
        act = _run if is_fetched else _submit
        await act(call, "asample", _create_sample_request(sampler_id, number), f"{number:032d}")
        if not is_fetched and number % 50 == 0:
            # The queue of samples is limited.
            await _run(call, "asample", _create_sample_request(sampler_id, 10_000 + number), f"last{number}")

    assert _measure_growth(sample, 500, 2000, sys.getallocatedblocks) < MAX_BLOCKS


def test_retained_samples_take_no_memory(serve: ServerFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without limits that drop anything, fetched results and their requests are on disk, and answered from there."""
    monkeypatch.setattr("tinkerwire._server.bounded_table.RECENT_BYTES", 100 * KIB)
    call = _without_contract_check(serve())
    sampler_id = call.create_sampler()
    requests: list[tuple[str, Any]] = []

    async def sample(number: int) -> None:
        body = _create_sample_request(sampler_id, number)
        request_id = await _submit(call, "asample", body, f"{number:032d}")
        reply = await call.send("POST", "retrieve_future", {"request_id": request_id})
        if number % 100 == 0:
            requests.append((request_id, reply.body))

    assert _measure_growth(sample, 500, 1500, sys.getallocatedblocks) < MAX_BLOCKS
    for index, (request_id, result) in enumerate(requests):
        body = _create_sample_request(sampler_id, index * 100)
        for key in (f"{index * 100:032d}", f"other {index}", None):
            assert call.submit("asample", body, key=key) == request_id
        other = call.post("asample", _create_sample_request(sampler_id, 10**6), key=f"{index * 100:032d}")
        assert other.status == 409
        assert call.result(request_id) == result


def test_training_does_not_leak_memory(serve: ServerFactory, batch: BatchFactory) -> None:
    """Memory reaches a plateau over forward passes and steps."""
    call = _without_contract_check(serve(retention=SMALL_RETENTION))
    model_id = call.create_model()

    async def train(number: int) -> None:
        forward = {"model_id": model_id, "seq_id": 2 * number + 1, "forward_input": batch()}
        await _run(call, "forward", forward, f"f{number:032d}")
        await _run(call, "optim_step", _step(model_id, 2 * number + 2), f"s{number:032d}")

    assert _measure_growth(train, 200, 500, sys.getallocatedblocks) < MAX_BLOCKS


def test_ended_sessions_do_not_leak_memory(serve: ServerFactory, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expired sessions are removed in the end, with their models and samplers."""
    monkeypatch.setattr("tinkerwire._server.sessions.sessions.EXPIRED_BYTES", 100 * KIB)
    call = _without_contract_check(serve(retention=SMALL_RETENTION, clock=clock, session_ttl_s=60))

    async def live(number: int) -> None:
        clock.now += 61
        body = {"tags": [], "user_metadata": {"note": "x" * 500}, "sdk_version": "0.16.1"}
        session_id = (await call.send("POST", "create_session", body)).body["session_id"]
        for sampler in range(3):
            opening = {"session_id": session_id, "sampling_session_seq_id": sampler, "base_model": NANO}
            assert (await call.send("POST", "create_sampling_session", opening)).status == 200

    assert _measure_growth(live, 100, 1000, sys.getallocatedblocks) < MAX_BLOCKS


def test_newest_expired_sessions_stay_listed(
    serve: ServerFactory, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest expired sessions return 410; an older one is 404."""
    monkeypatch.setattr("tinkerwire._server.sessions.sessions.EXPIRED_BYTES", 20 * KIB)
    call = serve(clock=clock, session_ttl_s=60)
    ids = []
    for _ in range(20):
        ids.append(call.create_session())
        clock.now += 61
    listing = call("GET", "sessions").body["sessions"]
    assert 2 <= len(listing) < 20
    assert listing == ids[: -len(listing) - 1 : -1]
    statuses = [call.post("session_heartbeat", {"session_id": session_id}).status for session_id in (ids[-1], ids[0])]
    assert statuses == [410, 404]


def test_samples_by_path_keep_the_last_used_sessions_only(serve: ServerFactory) -> None:
    """A sample that names a path opens a session."""
    call = serve()
    model_id = call.create_model()
    body = {"prompt": {"chunks": [{"tokens": [1]}]}, "sampling_params": {"max_tokens": 1, "temperature": 0}}
    paths = [
        call.run("save_weights_for_sampler", {"model_id": model_id, "path": f"step-{number}"})["path"]
        for number in range(20)
    ]
    for path in paths * 2:
        call.run("asample", {**body, "model_path": path})
    assert len(call.server._state.samplers._implicit) == 16


@pytest.mark.parametrize("is_fetched", [True, False])
def test_resend_of_a_dropped_result_is_410(serve: ServerFactory, is_fetched: bool) -> None:
    """A resend with the same key or seq_id has the same request id; the poll reports that the work ran, once."""
    call = serve(retention=RetentionPolicy(fetched_bytes=1, unfetched_bytes=1))
    model_id = call.create_model()
    first = call.submit("optim_step", _step(model_id, 1), key="first")
    if is_fetched:
        call.result(first)
    for seq_id in (2, 3):
        request_id = call.submit("optim_step", _step(model_id, seq_id))
        if is_fetched or seq_id == 3:
            call.result(request_id)
    for key in ("first", "other", None):
        assert call.submit("optim_step", _step(model_id, 1), key=key) == first
    rejection = call.post("retrieve_future", {"request_id": first})
    assert (rejection.status, "no longer kept" in rejection.body["detail"]) == (410, True)
    assert call.run("optim_step", _step(model_id))["metrics"]["optimizer_step:max"] == 4


def test_resend_within_the_limits_gives_the_same_result(serve: ServerFactory) -> None:
    """A resend of a fetched sample returns the stored result instead of a second draw."""
    call = serve()
    sampler_id = call.create_sampler()
    ids = [call.submit("asample", _create_sample_request(sampler_id, number)) for number in range(300)]
    results = [call.result(request_id) for request_id in ids]
    assert [call.submit("asample", _create_sample_request(sampler_id, number)) for number in range(300)] == ids
    assert [call.result(request_id) for request_id in ids] == results


def test_fetched_results_are_dropped_before_older_ones(serve: ServerFactory) -> None:
    """With too many results, the unfetched ones stay, although they are older."""
    call = serve(retention=RetentionPolicy(results=3))
    sampler_id = call.create_sampler()
    older = call.submit("asample", _create_sample_request(sampler_id, 0))
    assert asyncio.run(call.server._state.futures.get(older).wait(20)) is not None
    fetched = []
    for number in range(1, 5):
        fetched.append(call.submit("asample", _create_sample_request(sampler_id, number)))
        call.result(fetched[-1])
    statuses = [call.post("retrieve_future", {"request_id": request_id}).status for request_id in (fetched[0], older)]
    assert statuses == [410, 200]


def test_reused_seq_id_of_a_dropped_request_is_409(serve: ServerFactory) -> None:
    """Operations, models and sampling sessions return 409; nothing replaces the existing object."""
    call = serve(retention=RetentionPolicy(request_bytes=1))
    session_id = call.create_session()
    model_id = call.create_model(session_id)
    opening = {"session_id": session_id, "sampling_session_seq_id": 0, "base_model": NANO}
    assert call.post("create_sampling_session", opening).status == 200
    for seq_id in (1, 2):
        call.run("optim_step", _step(model_id, seq_id))
    creating = {"session_id": session_id, "model_seq_id": 0, "base_model": NANO, "lora_config": {"rank": 4, "seed": 1}}
    repeated = [
        ("optim_step", _step(model_id, 1)),
        ("create_model", creating),
        ("create_sampling_session", opening),
    ]
    assert [call.post(path, body).status for path, body in repeated] == [409, 409, 409]
    assert call.run("optim_step", _step(model_id))["metrics"]["optimizer_step:max"] == 3


def test_samples_do_not_evict_training_requests(serve: ServerFactory) -> None:
    """A step is recognized after more samples than the table of samples holds."""
    call = _without_contract_check(serve(retention=SMALL_RETENTION))
    sampler_id, model_id = call.create_sampler(), call.create_model()
    step = call.submit("optim_step", _step(model_id, 1))
    first = call.submit("asample", _create_sample_request(sampler_id, 0))
    for number in range(1, 400):
        call.submit("asample", _create_sample_request(sampler_id, number))
    assert call.submit("optim_step", _step(model_id, 1)) == step
    assert call.submit("asample", _create_sample_request(sampler_id, 0)) != first


def test_counted_memory_is_at_least_the_real_memory(serve: ServerFactory) -> None:
    """The limits count bytes of this process; two-token samples take at most the counted size."""
    call = _without_contract_check(serve())
    sampler_id = call.create_sampler()

    def counted() -> int:
        state = call.server._state
        tables = (state.futures.results, state.samples, state.requests, state.idempotency_cache.table)
        return sum(table.size_bytes for table in tables)

    async def sample(number: int) -> None:
        await _run(call, "asample", _create_sample_request(sampler_id, number), f"{number:032d}")

    traced = tracemalloc.get_traced_memory
    tracemalloc.start()
    try:
        real = _measure_growth(sample, 50, 400, lambda: traced()[0])
    finally:
        tracemalloc.stop()
    assert 0.3 * counted() / 450 < real < 1.1 * counted() / 450


def test_client_copy_continues_after_its_completions_were_dropped(serve: ServerFactory) -> None:
    """Cursors only increase, so that a returning client misses no completion since."""
    call = serve(wire_version="0.38.0", retention=RetentionPolicy(fetched_bytes=1, unfetched_bytes=1))
    sampler_id = call.create_sampler()
    target = {"type": "sampling_session", "sampling_session_id": sampler_id, "cloned_sampler_id": 0}
    cursor = 0
    for seq_id in range(5):
        request_id = call.submit("asample", _create_sample_request(sampler_id, seq_id))
        body = call.post("retrieve_futures", {"target": target, "prev_cursor": cursor}).body
        assert [completion["request_id"] for completion in body["completions"]] == [request_id]
        assert body["cursor"] > cursor
        cursor = body["cursor"]
        call.result(request_id)
        call.run(
            "asample", {**_create_sample_request(sampler_id, seq_id), "sampling_session_id": call.create_sampler()}
        )
        gc.collect()


@pytest.mark.parametrize("setting", ["seconds", "results", "unfetched_bytes", "fetched_bytes", "request_bytes"])
@pytest.mark.parametrize("value", [0, -1])
def test_limits_must_be_positive(setting: str, value: int) -> None:
    """The error names the limit."""
    with pytest.raises(ValueError, match=rf"{setting} must be .*, got {value}"):
        RetentionPolicy(**{setting: value})  # type: ignore[arg-type]
