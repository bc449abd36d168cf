"""Operations behind the creation of their model, when it fails."""

from __future__ import annotations

import asyncio

import pytest

import tinkerwire as tw
from support.clients import ADAM, datum
from support.scripted import PATIENCE_S, Answer, Hold, Scripted, seq_ids

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("step", ["create_session", "create_model", "retrieve_future"])
def test_a_failed_creation_reaches_every_operation(server: Scripted, client: tw.ServiceClient, step: str) -> None:
    """When the model cannot be created, each queued operation fails with the reason and its cause; nothing is sent."""
    server.rules[step] = lambda _: Answer({"detail": "out of GPUs"}, status=404)
    training = client.create_lora_training_client("base")
    futures = [training.optim_step(ADAM), training.save_state("a"), training.forward([datum()], "cross_entropy")]
    sampling = training.save_weights_and_get_sampling_client()
    with pytest.raises(tw.NotFoundError, match="out of GPUs"):
        training.result(PATIENCE_S)
    with pytest.raises(tw.NotFoundError, match="out of GPUs"):
        training.get_info()
    for waiting in (*futures, sampling, training.optim_step(ADAM)):
        with pytest.raises(tw.TinkerError, match=r"not created: .*out of GPUs") as caught:
            waiting.result(PATIENCE_S)
        assert isinstance(caught.value.__cause__, tw.NotFoundError)
    assert seq_ids(server) == []


def test_a_cancelled_creation_is_said(server: Scripted, client: tw.ServiceClient) -> None:
    """Operations behind a creation that was cancelled say so."""
    hold = Hold()
    server.rules["create_model"] = lambda asked: Answer(server.happy(asked).body, hold=hold)
    training = client.create_lora_training_client("base")
    future = training.optim_step(ADAM)
    server.wait_for_requests("create_model")

    async def give_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(training.result_async(), 0.01)

    asyncio.run(give_up())
    with pytest.raises(tw.TinkerError, match="not created: that was cancelled"):
        future.result(PATIENCE_S)
    hold.release()


def test_a_model_whose_weights_did_not_load_trains_nothing(server: Scripted, client: tw.ServiceClient) -> None:
    """create_training_client_from_state: when the load fails, no operation runs on the bare model."""
    server.on_poll("LoadWeights", lambda _: Answer({"error": "no such checkpoint", "category": "user"}))
    training = client.create_training_client_from_state("tinker://m0/weights/a")
    with pytest.raises(tw.TinkerError, match="no such checkpoint"):
        training.optim_step(ADAM).result(PATIENCE_S)
    assert not server.named("optim_step")
