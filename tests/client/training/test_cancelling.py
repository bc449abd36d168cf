"""Tests of cancelled operations: later operations neither wait for them nor overtake others."""

from __future__ import annotations

import asyncio
import gc

import pytest

import tinkerwire as tw
from support.clients import ADAM, datum, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order, seq_ids

pytestmark = pytest.mark.timeout(60)


def test_operations_cancelled_in_the_queue_are_not_sent(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Operations cancelled in the queue leave no gap and delay no other; the order is kept."""
    gate = Gate()
    server.rules["forward_backward"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=gate
    )
    first = training.forward_backward([datum()], "cross_entropy")
    server.wait_for_requests("forward_backward")
    futures = [training.optim_step(ADAM) for _ in range(10)]
    for future in futures[::2]:
        assert future.cancel()
    gate.release()
    first.result(TEST_TIMEOUT_S)
    for future in futures[1::2]:
        future.result(TEST_TIMEOUT_S)
    for future in futures[::2]:
        with pytest.raises(tw.CancelledSubmissionError, match="was cancelled"):
            future.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == list(range(1, 7))


def test_cancelling_in_the_queue_keeps_the_order(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """If the middle operation is cancelled, the last one still waits for the first one."""
    gate = Gate()
    server.rules["forward_backward"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=gate
    )
    first = training.forward_backward([datum()], "cross_entropy")
    server.wait_for_requests("forward_backward")
    middle, last = training.optim_step(ADAM), training.save_state("a")
    middle.cancel()
    # One more operation on another model shows that the loop had time to make the mistake.
    training._session.connection.start(lambda: asyncio.sleep(0.02)).result(TEST_TIMEOUT_S)
    assert not server.named("save_weights")
    gate.release()
    first.result(TEST_TIMEOUT_S)
    last.result(TEST_TIMEOUT_S)


def test_request_of_a_cancelled_operation_completes(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """An operation cancelled during its request fails at once; its request completes, without a gap."""
    gate = Gate()
    server.rules["forward_backward"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=gate
    )
    sent = training.forward_backward([datum()], "cross_entropy")
    server.wait_for_requests("forward_backward")
    following = training.optim_step(ADAM)
    sent.cancel()
    with pytest.raises(tw.CancelledSubmissionError):
        sent.result(TEST_TIMEOUT_S)
    training._session.connection.start(lambda: asyncio.sleep(0.02)).result(TEST_TIMEOUT_S)
    assert server.active["forward_backward"] == 1
    assert not server.named("optim_step")
    gate.release()
    following.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 2]
    assert not server.polls("ForwardBackward")


def test_rejected_request_of_a_cancelled_operation_frees_its_seq_id(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The next operation gets the seq_id, and nothing is logged."""
    gate = Gate()
    server.rules["optim_step"] = in_order(
        ScriptedResponse({"detail": "bad"}, status=422, gate=gate), server.healthy_response
    )
    sent = training.optim_step(ADAM)
    server.wait_for_requests("optim_step")
    following = training.optim_step(ADAM)
    sent.cancel()
    gate.release()
    following.result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1, 1]
    gc.collect()
    assert not caplog.records


def test_close_does_not_wait_for_a_cancelled_request(server: ScriptedServer) -> None:
    """Close does not wait for the request of a cancelled operation."""
    gate = Gate()
    server.rules["optim_step"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    with open_client(server.url) as client:
        sent = client.create_lora_training_client("base").optim_step(ADAM)
        server.wait_for_requests("optim_step")
        sent.cancel()
        client.close().result(TEST_TIMEOUT_S)
    server.wait_for(lambda: server.active["optim_step"] == 0, "the client hangs up")
    gate.release()
