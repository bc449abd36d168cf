"""Tests of operations queued behind the creation of their model, when it fails."""

from __future__ import annotations

import asyncio

import pytest

import tinkerwire as tw
from support.clients import ADAM, datum, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order, seq_ids

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("step", ["create_session", "create_model", "retrieve_future"])
def test_failed_creation_reaches_every_operation(server: ScriptedServer, client: tw.ServiceClient, step: str) -> None:
    """Each queued operation raises the reason with its cause; nothing is sent."""
    server.rules[step] = lambda _: ScriptedResponse({"detail": "out of GPUs"}, status=404)
    training = client.create_lora_training_client("base")
    futures = [training.optim_step(ADAM), training.save_state("a"), training.forward([datum()], "cross_entropy")]
    sampling = training.save_weights_and_get_sampling_client()
    with pytest.raises(tw.NotFoundError, match="out of GPUs"):
        training.result(TEST_TIMEOUT_S)
    with pytest.raises(tw.NotFoundError, match="out of GPUs"):
        training.get_info()
    for waiting in (*futures, sampling, training.optim_step(ADAM)):
        with pytest.raises(tw.TinkerError, match=r"not created: .*out of GPUs") as caught:
            waiting.result(TEST_TIMEOUT_S)
        assert isinstance(caught.value.__cause__, tw.NotFoundError)
    assert seq_ids(server) == []


def test_operations_after_a_cancelled_creation_name_the_cancellation(
    server: ScriptedServer, client: tw.ServiceClient
) -> None:
    """Operations queued behind a cancelled creation raise an error that names the cancellation."""
    gate = Gate()
    server.rules["create_model"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    training = client.create_lora_training_client("base")
    future = training.optim_step(ADAM)
    server.wait_for_requests("create_model")

    async def give_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(training.result_async(), 0.01)

    asyncio.run(give_up())
    with pytest.raises(tw.TinkerError, match="not created: its creation was cancelled"):
        future.result(TEST_TIMEOUT_S)
    gate.release()


def test_failed_load_prevents_training(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """If the load of create_training_client_from_state fails, no operation runs on the new model."""
    server.on_poll("LoadWeights", lambda _: ScriptedResponse({"error": "no such checkpoint", "category": "user"}))
    training = client.create_training_client_from_state("tinker://m0/weights/a")
    with pytest.raises(tw.TinkerError, match="no such checkpoint"):
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert not server.named("optim_step")


FLAGS = {"create_model_via_load_weights": True}
PATH = "tinker://m0/weights/a"


@pytest.mark.parametrize("status", [400, 404, 405, 422, 501])
@pytest.mark.parametrize("wire_version", [None, "0.24.1"])
def test_rejected_creation_by_load_falls_back_to_create_model(
    server: ScriptedServer, status: int, wire_version: str | None
) -> None:
    """Its flag promises creation by load_weights: the client falls back to create_model and load, permanently."""
    server.rules["client/config"] = lambda _: ScriptedResponse(FLAGS)

    def load(request: RecordedRequest) -> ScriptedResponse:
        return (
            server.healthy_response(request)
            if request.body.get("model_id")
            else ScriptedResponse({"detail": "no model_id"}, status)
        )

    server.rules["load_weights"] = load
    flags = FLAGS if wire_version else None
    with open_client(server.url, wire_version=wire_version, client_config=flags) as client:
        for _ in range(2):
            assert client.create_training_client_from_state(PATH).result(TEST_TIMEOUT_S).model_id == "m1"
    created = server.bodies("create_model")
    assert [body["model_seq_id"] for body in created] == [0, 1]
    loads = [body.get("model_id") for body in server.bodies("load_weights")]
    assert loads == [None] * (3 if status == 501 else 1) + ["m1", "m1"]


def test_load_that_may_have_created_model_is_not_resent(server: ScriptedServer) -> None:
    """A rejection after a lost response, or after a future, proves nothing about the first attempt."""
    rejection = ScriptedResponse({"detail": "it exists"}, 400)
    server.rules["load_weights"] = in_order(ScriptedResponse(drop=True), rejection)
    with open_client(server.url, wire_version="0.24.1", client_config=FLAGS) as client:
        with pytest.raises(tw.BadRequestError, match="it exists"):
            client.create_training_client_from_state(PATH).result(TEST_TIMEOUT_S)
        del server.rules["load_weights"]
        server.on_poll("LoadWeights", lambda _: ScriptedResponse({"detail": "lost"}, 404))
        with pytest.raises(tw.TinkerError, match="lost"):
            client.create_training_client_from_state(PATH).result(TEST_TIMEOUT_S)
    assert not server.named("create_model")


def test_error_of_an_unknown_path_is_that_of_load_weights(server: ScriptedServer) -> None:
    """If the server does not know the path either, the first error is raised."""
    server.rules["load_weights"] = lambda _: ScriptedResponse({"detail": "no such checkpoint"}, 404)
    server.rules["weights_info"] = server.rules["training_runs/m0"] = lambda _: ScriptedResponse(
        {"detail": "what?"}, 404
    )
    with open_client(server.url, wire_version="0.24.1", client_config=FLAGS) as client:
        with pytest.raises(tw.NotFoundError, match="no such checkpoint"):
            client.create_training_client_from_state(PATH).result(TEST_TIMEOUT_S)
        assert client.dialect.creates_model_on_load
    assert not server.named("create_model")
