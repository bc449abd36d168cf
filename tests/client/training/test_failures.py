"""Tests of failed training steps: their errors are logged or raised, and saved weights without them are reported."""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, datum, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
NO_MEMORY = {"error": "out of memory", "category": "server"}
OUTPUT = {
    "loss_fn_output_type": "T",
    "loss_fn_outputs": [{"logprobs": {"data": [-1.0, -2.0], "dtype": "float32", "shape": [2]}}],
    "metrics": {"loss:sum": 3.0},
}


def list_messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_failure_is_logged_while_its_future_exists(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A caller may keep the future of a failed batch unread; the failure is logged once."""
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(NO_MEMORY))
    future = training.forward_backward([datum()], "cross_entropy")
    wait_until(lambda: bool(list_messages(caplog, logging.ERROR)), "the failure is logged")
    (text,) = list_messages(caplog, logging.ERROR)
    assert "ForwardBackward" in text
    assert "out of memory" in text
    del future
    assert len(list_messages(caplog, logging.ERROR)) == 1


@pytest.mark.parametrize("wait", ["result", "callback", "gather"])
def test_failure_that_a_caller_waits_for_is_not_logged(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture, wait: str
) -> None:
    """A waiting caller gets the error; a log line would be noise."""
    gate = Gate()
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(NO_MEMORY, gate=gate))
    future = training.forward_backward([datum()], "cross_entropy")
    finished = threading.Event()
    if wait == "callback":
        future.on_done(lambda _: finished.set())
        gate.release()
        assert finished.wait(TEST_TIMEOUT_S)
        assert future.exception() is not None
    else:
        waiting = future if wait == "result" else tw.gather([future])
        threading.Timer(0.2, gate.release).start()
        with pytest.raises(tw.RequestFailedError):
            waiting.result(TEST_TIMEOUT_S)
    assert not list_messages(caplog, logging.ERROR)


@pytest.mark.parametrize("method", ["save_state", "save_weights_for_sampler", "save_weights_and_get_sampling_client"])
def test_save_warning_names_failed_steps(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    """Weights saved after a failed batch look trained; a warning names the batch, once."""
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(NO_MEMORY))
    future = training.forward_backward([datum()], "cross_entropy")
    wait_until(future.done, "the failure")
    for name in ("first", "second"):
        getattr(training, method)(name).result(TEST_TIMEOUT_S)
    (text,) = list_messages(caplog, logging.WARNING)
    assert "'first' lack 1 training steps that failed: ForwardBackward" in text
    assert "out of memory" in text


def test_save_after_a_retrieved_error_does_not_warn(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A caller that got the error may have repeated the batch."""
    server.on_poll("ForwardBackward", in_order(ScriptedResponse(NO_MEMORY), server.healthy_response))
    with pytest.raises(tw.RequestFailedError):
        training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
    training.save_state("a").result(TEST_TIMEOUT_S)
    assert not list_messages(caplog, logging.WARNING)


def squares(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
    return 1.0, {}, [np.zeros(2, np.float32) for _ in logprobs]


@pytest.mark.parametrize("stage", ["forward", "backward", "cancelled"])
def test_failed_custom_loss_fails_queued_operations(
    server: ScriptedServer, training: tw.TrainingClient, stage: str
) -> None:
    """A rejected pass, and a cancellation during the function, leave no gradients either."""
    is_running, go_on = threading.Event(), threading.Event()

    def waiting(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        is_running.set()
        go_on.wait(TEST_TIMEOUT_S)
        return squares(data, logprobs)

    server.on_poll("Forward", lambda _: ScriptedResponse(OUTPUT))
    rejected = ScriptedResponse({"detail": "too long"}, status=422)
    if stage == "forward":
        server.rules["forward"] = lambda _: rejected
    if stage == "backward":
        server.rules["forward_backward"] = lambda _: rejected
    custom = training.forward_backward_custom([datum()], waiting, arrays="numpy")
    queued = training.optim_step(ADAM)
    if stage == "cancelled":
        assert is_running.wait(TEST_TIMEOUT_S)
        custom.cancel()
    go_on.set()
    with pytest.raises(tw.PrecedingOperationError):
        queued.result(TEST_TIMEOUT_S)
    with pytest.raises(tw.TinkerError):
        custom.result(TEST_TIMEOUT_S)
    assert is_running.is_set() == (stage != "forward")
    training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert len(server.named("optim_step")) == 1


def test_training_continues_after_a_cancelled_custom_loss(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """A caller that cancels knows the outcome and need not retrieve an error."""
    go_on = threading.Event()

    def waiting(data: list[tw.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        go_on.wait(TEST_TIMEOUT_S)
        return squares(data, logprobs)

    server.on_poll("Forward", lambda _: ScriptedResponse(OUTPUT))
    custom = training.forward_backward_custom([datum()], waiting, arrays="numpy")
    wait_until(lambda: bool(server.polls("Forward")), "the forward pass is under way")
    assert custom.cancel()
    go_on.set()
    wait_until(lambda: training.optim_step(ADAM).exception(TEST_TIMEOUT_S) is None, "training continues")
