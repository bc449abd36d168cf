"""Tests that operations of a model run once each and in order, and that resends are recognized."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from support.server_fixtures import BatchFactory, Caller, ServerFactory

NANO = "tinkerwire/byte-nano"


def _step(model_id: str, seq_id: int | None, rate: float = 0.01) -> dict[str, Any]:
    body = {"model_id": model_id, "adam_params": {"learning_rate": rate}}
    return body if seq_id is None else {**body, "seq_id": seq_id}


def _count_steps(call: Caller, model_id: str) -> float:
    metrics = call.run("optim_step", _step(model_id, None))["metrics"]
    step_count: float = metrics["optimizer_step:max"]
    return step_count


def test_resend_does_not_run_twice(call: Caller) -> None:
    """The same bytes with the same seq_id give the same future, and one step."""
    model_id = call.create_model()
    first = call.submit("optim_step", _step(model_id, 1))
    assert call.submit("optim_step", _step(model_id, 1)) == first
    call.submit("optim_step", _step(model_id, 2))
    assert call.submit("optim_step", _step(model_id, 1)) == first
    assert _count_steps(call, model_id) == 3


def test_equal_idempotency_key_is_the_same_operation(call: Caller) -> None:
    """A resend with its idempotency key returns the first response, with or without seq_id."""
    model_id = call.create_model()
    for seq_id in (None, 1):
        body = _step(model_id, seq_id)
        assert call.submit("optim_step", body, key=f"k{seq_id}") == call.submit("optim_step", body, key=f"k{seq_id}")
    assert _count_steps(call, model_id) == 3


def test_other_request_with_a_used_key_is_a_conflict(call: Caller) -> None:
    """The server rejects the request instead of returning a wrong response."""
    model_id = call.create_model()
    call.submit("optim_step", _step(model_id, 1), key="k")
    rejection = call.post("optim_step", _step(model_id, 2), key="k")
    assert (rejection.status, rejection.headers["x-should-retry"]) == (409, "false")


def test_rejected_request_can_be_corrected_with_its_key(call: Caller) -> None:
    """The server remembers only successful requests."""
    model_id = call.create_model()
    assert call.post("optim_step", {"model_id": model_id}, key="k").status == 422
    assert call.post("optim_step", _step(model_id, 1), key="k").status == 200


def test_used_seq_id_with_another_body_is_a_conflict(serve: ServerFactory) -> None:
    """The error names the expected seq_id and forbids a retry."""
    call = serve(gap_wait_s=0.0)
    model_id = call.create_model()
    call.submit("optim_step", _step(model_id, 1))
    call.submit("optim_step", _step(model_id, 5))
    for seq_id in (5, 3, 0, -1):
        rejection = call.post("optim_step", _step(model_id, seq_id, rate=0.5))
        assert (rejection.status, rejection.headers["x-should-retry"]) == (409, "false")
    assert "expected 6" in call.post("optim_step", _step(model_id, 3)).body["detail"]


@pytest.mark.parametrize("strict", [False, True])
def test_gaps_are_accepted_unless_the_server_is_strict(serve: ServerFactory, strict: bool) -> None:
    """By default only a lower seq_id is rejected; a strict server rejects gaps too, with the expected seq_id."""
    call = serve(strict_sequence=strict)
    model_id = call.create_model()
    call.submit("optim_step", _step(model_id, 1))
    reply = call.post("optim_step", _step(model_id, 4))
    assert reply.status == (409 if strict else 200)
    if strict:
        assert "expected 2" in reply.body["detail"]


def test_operations_run_in_the_order_of_their_seq_ids(call: Caller, gate: threading.Event, batch: BatchFactory) -> None:
    """An operation that is queued behind a slow one waits for it."""
    model_id = call.create_model()
    slow = call.submit("forward", {"model_id": model_id, "forward_input": batch(), "seq_id": 1})
    save = call.submit("save_weights", {"model_id": model_id, "path": "before", "seq_id": 2})
    call.submit("forward_backward", {"model_id": model_id, "forward_backward_input": batch(), "seq_id": 3})
    call.submit("optim_step", _step(model_id, 4, rate=0.01))
    after = call.submit("forward", {"model_id": model_id, "forward_input": batch(), "seq_id": 5})
    assert call("GET", "checkpoints").body["checkpoints"] == []
    gate.set()
    losses = [call.result(request_id)["metrics"]["loss:sum"] for request_id in (slow, after)]
    assert call.result(save)["path"].endswith("/weights/before")
    assert losses[0] > losses[1]


def _train(call: Caller, order: list[int], batch: BatchFactory) -> list[float]:
    """Send four chunks and a step in an order; return their losses and the loss after them."""
    model_id = call.create_model()
    futures = {}
    for seq_id in order:
        if seq_id == 5:
            futures[seq_id] = call.submit("optim_step", _step(model_id, 5))
            continue
        body = {"model_id": model_id, "seq_id": seq_id, "forward_backward_input": batch([70 + seq_id, 80, 90])}
        futures[seq_id] = call.submit("forward_backward", body)
    losses = [call.result(futures[seq_id])["metrics"]["loss:sum"] for seq_id in range(1, 5)]
    call.result(futures[5])
    return [*losses, call.loss(model_id)]


@pytest.mark.parametrize("order", [[2, 3, 4, 1, 5], [5, 4, 3, 2, 1], [1, 5, 3, 2, 4]])
def test_order_of_arrival_does_not_change_results(serve: ServerFactory, order: list[int], batch: BatchFactory) -> None:
    """Parallel chunks of a batch, and a step ahead of them, give the bits of the sequential order."""
    call = serve(gap_wait_s=60.0)
    assert _train(call, order, batch) == _train(call, [1, 2, 3, 4, 5], batch)


def test_operation_after_a_gap_runs_after_the_wait(serve: ServerFactory, timers: list[Any]) -> None:
    """Its future is created at once and ends in time; an operation that arrives too late is rejected."""
    call = serve(gap_wait_s=0.3, long_poll_s=0.05)
    model_id = call.create_model()
    call.submit("optim_step", _step(model_id, 1))
    waiting_id = call.submit("optim_step", _step(model_id, 3))
    assert call.submit("optim_step", _step(model_id, 3)) == waiting_id
    assert call.post("retrieve_future", {"request_id": waiting_id}).status == 408
    (timer,) = timers
    assert timer.seconds == 0.3
    timer.end()
    while (reply := call.post("retrieve_future", {"request_id": waiting_id})).status == 408:
        pass
    assert reply.body["metrics"]["optimizer_step:max"] == 2
    assert "expected 4" in call.post("optim_step", _step(model_id, 2)).body["detail"]


def test_rejected_operation_is_not_waited_for(serve: ServerFactory) -> None:
    """Official clients continue with the next number after a rejection."""
    call = serve(gap_wait_s=60.0, long_poll_s=5.0)
    model_id = call.create_model()
    call.submit("optim_step", _step(model_id, 1))
    invalid_load = {"model_id": model_id, "seq_id": 2, "path": "no path", "optimizer": True}
    assert call.post("load_weights", invalid_load).status == 422
    assert call.run("optim_step", _step(model_id, 3))["metrics"]["optimizer_step:max"] == 2


def test_waiting_operation_ends_with_its_model(serve: ServerFactory) -> None:
    """Unloading the model runs it; closing the server fails it."""
    call = serve(gap_wait_s=60.0, long_poll_s=5.0)
    model_id = call.create_model()
    waiting_id = call.submit("optim_step", _step(model_id, 3))
    call.run("unload_model", {"model_id": model_id})
    assert "metrics" in call.result(waiting_id)
    waiting = call.submit("optim_step", _step(call.create_model(), 3))
    future = call.server._state.futures.get(waiting)
    call.server.close()
    assert future.result.failed


def test_models_do_not_wait_for_each_other(call: Caller, gate: threading.Event, batch: BatchFactory) -> None:
    """Each model has its own worker: while one is busy, another trains."""
    session_id = call.create_session()
    slow, quick = call.create_model(session_id, 0), call.create_model(session_id, 1)
    waiting = call.submit("forward", {"model_id": slow, "forward_input": batch()})
    assert "metrics" in call.run("optim_step", _step(quick, 1))
    gate.set()
    assert "metrics" in call.result(waiting)


def test_resent_sample_is_not_drawn_twice(call: Caller) -> None:
    """The seq_id of the sampling session identifies a sample, in any order."""
    body = {"session_id": call.create_session(), "sampling_session_seq_id": 0, "base_model": NANO}
    sampler_id = call.post("create_sampling_session", body).body["sampling_session_id"]
    sample_request = {
        "sampling_session_id": sampler_id,
        "prompt": {"chunks": [{"tokens": [1]}]},
        "sampling_params": {"max_tokens": 2},
    }
    later, first = (call.submit("asample", {**sample_request, "seq_id": seq_id}) for seq_id in (7, 0))
    assert call.submit("asample", {**sample_request, "seq_id": 7}) == later != first
    assert call.post("asample", {**sample_request, "num_samples": 2, "seq_id": 7}).status == 409


def test_resent_sampler_keeps_its_first_session(call: Caller) -> None:
    """Official clients increment the sampling session's number when they resend: the first session is returned."""
    model_id = call.create_model()
    body = {"model_id": model_id, "seq_id": 1}
    first = call.run("save_weights_for_sampler", {**body, "sampling_session_seq_id": 0}, key="a")
    repeated = call.run("save_weights_for_sampler", {**body, "sampling_session_seq_id": 1}, key="b")
    assert first == repeated
