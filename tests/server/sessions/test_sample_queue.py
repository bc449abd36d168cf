"""Tests of the queue of samples: requests for the same weights run as one batch, and each has its own result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from support.server_fixtures import Caller, ServerFactory
from tinkerwire._server.engine import Sampler, decoding
from tinkerwire._server.sessions import sample_queue

NANO = "tinkerwire/byte-nano"
LENGTH = 30


@attrs.define
class Engine:
    """The passes of the engine; each waits until ``gate`` is set.

    Args:
        gate: lets the passes run.
        running: set by the first pass.
        sizes: number of requests of each pass.
        started: first prompt token of each request, in the order of the starts.
    """

    gate: threading.Event = attrs.field(factory=threading.Event)
    running: threading.Event = attrs.field(factory=threading.Event)
    sizes: list[int] = attrs.field(factory=list)
    started: list[int] = attrs.field(factory=list)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Observe the passes of the engine, and block them at first; one thread runs all samples."""
    engine = Engine()
    run_step, start = decoding.run_step, Sampler.start

    def observe_pass(*arguments: Any) -> Any:
        engine.sizes.append(len(arguments[-1]))
        engine.running.set()
        assert engine.gate.wait(20)
        return run_step(*arguments)

    def observe_start(sampler: Sampler, prompt: Any, **options: Any) -> Any:
        engine.started.append(int(prompt[0]))
        return start(sampler, prompt, **options)

    monkeypatch.setattr(decoding, "run_step", observe_pass)
    monkeypatch.setattr(Sampler, "start", observe_start)
    monkeypatch.setattr(sample_queue.os, "cpu_count", lambda: 1)
    yield engine
    engine.gate.set()


@pytest.fixture
def call(engine: Engine, serve: ServerFactory) -> Caller:
    return serve(wire_version="0.38.0", long_poll_s=20.0)


def _create_request(sampler_id: str, token: int = 65, **changes: Any) -> dict[str, Any]:
    params = {"max_tokens": LENGTH, "seed": token, **changes.pop("sampling_params", {})}
    return {
        "sampling_session_id": sampler_id,
        "prompt": {"chunks": [{"tokens": [token, 66]}]},
        "sampling_params": params,
        **changes,
    }


def _block(call: Caller, engine: Engine, sampler_id: str) -> str:
    """Start a request, wait until its batch is running, and return its request id."""
    request_id = call.submit("asample", _create_request(sampler_id))
    assert engine.running.wait(20)
    return request_id


def _results(call: Caller, request_ids: list[str]) -> list[Any]:
    return [call.poll(request_id).body for request_id in request_ids]


def test_requests_run_as_one_batch(call: Caller, engine: Engine) -> None:
    """16 requests that are pending when a pass ends need the passes of one; the results are those of each alone."""
    sampler_id = call.create_sampler()
    bodies = [_create_request(sampler_id, 65 + index, num_samples=1 + index % 3) for index in range(16)]
    request_ids = [_block(call, engine, sampler_id)]
    request_ids += [call.submit("asample", body) for body in bodies[1:]]
    engine.gate.set()
    batch = _results(call, request_ids)
    assert engine.sizes == [1, *[16] * (LENGTH - 2), 15]
    engine.sizes.clear()
    alone = [_results(call, [call.submit("asample", body)]) for body in [_create_request(sampler_id), *bodies[1:]]]
    assert [[result] for result in batch] == alone
    assert engine.sizes == [1] * (16 * (LENGTH - 1))


def test_sessions_on_one_base_model_share_a_batch(call: Caller, engine: Engine) -> None:
    """A batch holds the requests for the same weights, from all sessions."""
    request_ids = [_block(call, engine, call.create_sampler())]
    request_ids += [call.submit("asample", _create_request(call.create_sampler())) for _ in range(2)]
    engine.gate.set()
    first, *others = _results(call, request_ids)
    assert others == [first, first]
    assert max(engine.sizes) == 3


def test_request_for_other_weights_is_not_overtaken(call: Caller, engine: Engine) -> None:
    """A younger request does not join the running batch while an older one waits for a thread."""
    model_id = call.create_model()
    save = {"model_id": model_id, "sampling_session_seq_id": 0}
    other_id = call.run("save_weights_for_sampler", save)["sampling_session_id"]
    sampler_id = call.create_sampler()
    request_ids = [_block(call, engine, sampler_id)]
    request_ids += [call.submit("asample", _create_request(sampler_id, 66))]
    request_ids += [call.submit("asample", _create_request(other_id, 67))]
    request_ids += [call.submit("asample", _create_request(sampler_id, 68))]
    engine.gate.set()
    _results(call, request_ids)
    assert engine.started == [65, 66, 67, 68]
    assert max(engine.sizes) == 2


def test_large_request_waits_for_room(call: Caller, engine: Engine) -> None:
    """A request that exceeds the limits of the running batch starts after it, and keeps its place."""
    sampler_id = call.create_sampler()
    request_ids = [_block(call, engine, sampler_id)]
    request_ids += [call.submit("asample", _create_request(sampler_id, 66, num_samples=128))]
    request_ids += [call.submit("asample", _create_request(sampler_id, 67))]
    engine.gate.set()
    _, large, _ = _results(call, request_ids)
    assert len(large["sequences"]) == 128
    assert engine.started == [65, 66, 67]
    assert max(engine.sizes) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"sampling_params": {"temperature": -1}},
        {"prompt": {"chunks": [{"tokens": [300]}]}},
        {"topk_prompt_logprobs": -1},
    ],
)
def test_invalid_request_does_not_affect_its_batch(call: Caller, engine: Engine, change: dict[str, Any]) -> None:
    """It fails as a user error, and the requests before and after it have their results."""
    sampler_id = call.create_sampler()
    request_ids = [_block(call, engine, sampler_id)]
    bodies = [_create_request(sampler_id), _create_request(sampler_id, **change), _create_request(sampler_id)]
    request_ids += [call.submit("asample", body) for body in bodies]
    engine.gate.set()
    first, second, invalid, last = _results(call, request_ids)
    assert first == second == last
    assert invalid["category"] == "user"


def test_cancelled_request_does_not_affect_its_batch(call: Caller, engine: Engine) -> None:
    """A pending request that is cancelled does not start; a running one fails, and its companions go on."""
    sampler_id = call.create_sampler()
    running_id = _block(call, engine, sampler_id)
    request_ids = [call.submit("asample", _create_request(sampler_id, 66)) for _ in range(3)]
    for request_id in (running_id, request_ids[1]):
        assert call.post("cancel_future", {"request_id": request_id}).status == 204
    engine.gate.set()
    first, pending, last = _results(call, request_ids)
    assert first == last
    assert len(first["sequences"][0]["tokens"]) == LENGTH
    assert "cancelled" in pending["error"]
    assert "cancelled" in call.poll(running_id).body["error"]
    assert engine.started == [65, 66, 66]


def test_requests_of_a_failed_batch_are_computed_alone(
    call: Caller, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unexpected error of a pass is logged; each request then has its result, or its own error."""
    sampler_id = call.create_sampler()
    request_ids = [_block(call, engine, sampler_id)]
    request_ids += [call.submit("asample", _create_request(sampler_id, token)) for token in (66, 65)]
    choose = decoding._choose

    def fail(groups: Any, logprobs: Any) -> Any:
        if any(group.run.prompt[0] == 66 for group in groups):
            raise MemoryError("no memory")
        return choose(groups, logprobs)

    monkeypatch.setattr(decoding, "_choose", fail)
    engine.gate.set()
    first, failed, last = _results(call, request_ids)
    assert first == last
    assert len(first["sequences"][0]["tokens"]) == LENGTH
    assert "MemoryError: no memory" in failed["error"]
    assert "a batch of samples failed" in caplog.text


def test_close_ends_a_running_batch_before_its_next_pass(call: Caller, engine: Engine) -> None:
    """The threads end although the requests are not finished."""
    sampler_id = call.create_sampler()
    _block(call, engine, sampler_id)
    queue = call.server._state.sample_queue
    queue.close()
    engine.gate.set()
    assert queue.join(20)
    assert len(engine.sizes) == 1


def test_requests_of_many_threads_get_their_own_results(serve: ServerFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads start requests for two sets of weights; each result equals that of the request alone."""
    monkeypatch.setattr(sample_queue.os, "cpu_count", lambda: 4)
    call = serve(long_poll_s=20.0)
    model_id = call.create_model()
    call.train_step(model_id)
    save = {"model_id": model_id, "sampling_session_seq_id": 0}
    sampler_ids = [call.create_sampler(), call.run("save_weights_for_sampler", save)["sampling_session_id"]]
    bodies = [_create_request(sampler_id, token) for token in range(20) for sampler_id in sampler_ids]
    alone = [call.run("asample", body) for body in bodies]

    async def submit_all() -> list[str]:
        replies = await asyncio.gather(*(call.send("POST", "asample", body) for body in bodies))
        return [reply.body["request_id"] for reply in replies]

    for _ in range(3):
        assert _results(call, asyncio.run(submit_all())) == alone
