"""Abandoned operations that create something: the client cancels them on the server, or logs them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, datum, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer
from tinkerwire._training.losses.handles import CustomLosses
from tinkerwire._training.losses.tracing import TracedLoss
from tinkerwire_generated.models import CustomLossGraph, CustomLossInput

pytestmark = pytest.mark.timeout(60)
NEW, OLD = "0.38.0", "0.16.1"
FLAGS = {"custom_loss_server_side": True}
PATH = "tinker://m1/weights/a"
LOG_TEXT = "was abandoned"
Start = Callable[[tw.ServiceClient], "tw.APIFuture[Any]"]


def create_training(client: tw.ServiceClient) -> tw.TrainingClient:
    """Create a model and wait for it."""
    return client.create_lora_training_client("base", rank=8).result(TEST_TIMEOUT_S)


def save_for_sampling(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Start a save that creates a sampling client."""
    return create_training(client).save_weights_and_get_sampling_client()._creation


def upload_custom_loss(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Start the upload of a loss with an empty graph, which does not need torch."""
    traced = TracedLoss("mine", (CustomLossInput(name="logprobs", rank=1),), CustomLossGraph(nodes=[]), None)
    losses = CustomLosses(client._session)
    return client._connection.start(lambda: losses.create(traced), "CreateCustomLoss")


START: dict[str, Start] = {
    "create_model": lambda client: client.create_lora_training_client("base", rank=8)._creation,
    "load_weights": lambda client: create_training(client).load_state(PATH),
    "save_weights": lambda client: create_training(client).save_state("a"),
    "save_weights_for_sampler": save_for_sampling,
    "create_sampling_session": lambda client: client.create_sampling_client(base_model="base")._creation,
    "copy_weights": lambda client: client.create_rest_client().copy_weights(PATH, "project"),
    "create_custom_loss": upload_custom_loss,
}
NEWER = ("copy_weights", "create_custom_loss")
"""Operations that old wires do not have."""


def hold_results(server: ScriptedServer, name: str) -> Gate:
    """Let the server accept one operation and hold its result until the gate opens."""
    gate = Gate()

    def poll(request: RecordedRequest) -> ScriptedResponse:
        if request.body["request_id"] != "late":
            return server.healthy_response(request)
        values = {"create_sampling_session": {"sampling_session_id": "sampler1"}}
        return ScriptedResponse(values.get(name, {}) if name in (*values, *NEWER) else server.result(name), gate=gate)

    server.rules[name] = lambda _: ScriptedResponse({"request_id": "late", "status": "pending"})
    server.rules["retrieve_future"] = poll
    server.rules["cancel_future"] = lambda _: ScriptedResponse({})
    return gate


def hold_response(server: ScriptedServer, name: str) -> Gate:
    """Let the server hold the response to one operation, which names a future, until the gate opens."""
    gate = Gate()
    server.rules[name] = lambda _: ScriptedResponse({"request_id": "late", "status": "pending"}, gate=gate)
    server.rules["cancel_future"] = lambda _: ScriptedResponse({})
    return gate


def cancel_before_response(server: ScriptedServer, client: tw.ServiceClient, response: ScriptedResponse) -> None:
    """Cancel the creation of a model whose response arrives after that."""
    gate = Gate()
    server.rules["create_model"] = lambda _: dataclasses.replace(response, gate=gate)
    future = START["create_model"](client)
    server.wait_for_requests("create_model")
    assert future.cancel()
    gate.release()


def wait_for_polls(server: ScriptedServer) -> None:
    """Wait until the client has polled for the held result."""
    server.wait_for(lambda: any(body["request_id"] == "late" for body in server.bodies("retrieve_future")), "a poll")


def list_cancelled_ids(server: ScriptedServer) -> list[str]:
    """Return the request ids that the client cancelled on the server."""
    return [body["request_id"] for body in server.bodies("cancel_future")]


@pytest.mark.parametrize("name", START)
def test_cancelled_operation_is_cancelled_on_the_server(
    server: ScriptedServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client sends one cancel_future with the request id, and logs nothing."""
    hold_results(server, name)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START[name](client)
        wait_for_polls(server)
        assert future.cancel()
        server.wait_for_requests("cancel_future")
        client.get_server_capabilities()
    assert list_cancelled_ids(server) == ["late"]
    assert LOG_TEXT not in caplog.text


@pytest.mark.parametrize("name", START)
def test_operation_cancelled_before_its_response_is_cancelled_on_the_server(server: ScriptedServer, name: str) -> None:
    """The client still waits for the response, and cancels its request id."""
    gate = hold_response(server, name)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START[name](client)
        server.wait_for_requests(name)
        assert future.cancel()
        gate.release()
        server.wait_for_requests("cancel_future")
    assert list_cancelled_ids(server) == ["late"]
    assert len(server.named(name)) == 1


@pytest.mark.parametrize("name", START)
def test_operation_past_its_deadline_is_cancelled_on_the_server(server: ScriptedServer, name: str) -> None:
    """The caller gets RequestTimeoutError, and the client cancels the operation on the server."""
    hold_results(server, name)
    retry = attrs.evolve(FAST, progress_timeout=1.0)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS, retry=retry) as client:
        future = START[name](client)
        wait_for_polls(server)
        with pytest.raises(tw.RequestTimeoutError):
            future.result(TEST_TIMEOUT_S)
        server.wait_for_requests("cancel_future")
    assert list_cancelled_ids(server) == ["late"]


@pytest.mark.parametrize("name", ["create_model", "create_sampling_session", "copy_weights"])
def test_response_after_the_deadline_is_cancelled_on_the_server(server: ScriptedServer, name: str) -> None:
    """The client cancels the request id of a response that arrives after the deadline."""
    gate = hold_response(server, name)
    retry = attrs.evolve(FAST, progress_timeout=0.5)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS, retry=retry) as client:
        with pytest.raises(tw.RequestTimeoutError):
            START[name](client).result(TEST_TIMEOUT_S)
        gate.release()
        server.wait_for_requests("cancel_future")
    assert list_cancelled_ids(server) == ["late"]


def test_cancelled_gather_cancels_every_operation(server: ScriptedServer) -> None:
    """The client cancels each save by its id, and no operation that creates nothing."""
    gate = Gate()
    server.rules["cancel_future"] = lambda _: ScriptedResponse({})
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        models = [create_training(client) for _ in range(2)]
        server.rules["retrieve_future"] = lambda request: ScriptedResponse(
            server.healthy_response(request).body, gate=gate
        )
        saves = [model.save_state("a") for model in models]
        steps = [model.optim_step(ADAM) for model in models]
        futures: list[tw.APIFuture[Any]] = [*saves, *steps]
        wait_until(lambda: all(future.request_id for future in futures), "a request id of every operation")
        ids = sorted(str(future.request_id) for future in saves)

        async def cancel_gather() -> None:
            task = asyncio.ensure_future(tw.gather(futures).result_async())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

        asyncio.run(cancel_gather())
        server.wait_for_requests("cancel_future", 2)
        gate.release()
        client.get_server_capabilities()
    assert sorted(list_cancelled_ids(server)) == ids


def test_timeout_of_result_does_not_cancel(server: ScriptedServer) -> None:
    """After a timeout of result() the operation continues, and its result arrives."""
    gate = hold_results(server, "save_weights")
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["save_weights"](client)
        wait_for_polls(server)
        with pytest.raises(TimeoutError):
            future.result(0.01)
        gate.release()
        assert future.result(TEST_TIMEOUT_S).path == PATH
    assert not list_cancelled_ids(server)


@pytest.mark.parametrize("name", [name for name in START if name not in ("create_model", *NEWER)])
def test_operation_that_the_server_cannot_cancel_is_logged(
    server: ScriptedServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One log line names the operation, its request and its path; the model stays usable."""
    gate = hold_results(server, name)
    with open_client(server.url, wire_version=OLD) as client:
        future = START[name](client)
        wait_for_polls(server)
        assert future.cancel()
        wait_until(lambda: LOG_TEXT in caplog.text, "the log line")
        gate.release()
        model = create_training(client)
        assert model.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
    assert caplog.text.count(LOG_TEXT) == 1
    kind = "".join(part.title() for part in name.split("_"))
    assert f"{kind} late {LOG_TEXT}" in caplog.text
    assert {"load_weights": PATH, "save_weights": "path a"}.get(name, "") in caplog.text
    assert not server.named("cancel_future")
    assert not server.named("unload_model")


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (ScriptedResponse(drop=True), "create_model"),
        (ScriptedResponse({"detail": "the worker died"}, status=500), "the server returned HTTP 500"),
    ],
    ids=str,
)
def test_model_of_a_lost_response_is_logged(
    server: ScriptedServer, lost: ScriptedResponse, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server may have created a model whose response is lost: it is logged, without a poll for no id."""
    with open_client(server.url, wire_version=OLD) as client:
        cancel_before_response(server, client, lost)
        wait_until(lambda: LOG_TEXT in caplog.text, "the log line")
    assert reason in caplog.text
    assert not server.named("retrieve_future")


@pytest.mark.parametrize("name", ["load_weights", "save_weights"])
def test_request_without_a_response_is_logged_with_its_model(
    server: ScriptedServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """If the deadline passes before the response, the log line names the model."""
    gate = hold_response(server, name)
    with open_client(server.url, wire_version=OLD, retry=attrs.evolve(FAST, progress_timeout=0.5)) as client:
        future = START[name](client)
        with pytest.raises(tw.RequestTimeoutError):
            future.result(TEST_TIMEOUT_S)
        wait_until(lambda: LOG_TEXT in caplog.text, "the log line")
        gate.release()
    assert "model_id m1" in caplog.text
    assert caplog.text.count(LOG_TEXT) == 1


def test_model_is_unloaded_if_the_server_cannot_cancel(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Before wire 0.26.2 the client waits a few seconds for the model, and unloads it."""
    gate = hold_results(server, "create_model")
    with open_client(server.url, wire_version=OLD) as client:
        future = START["create_model"](client)
        wait_for_polls(server)
        assert future.cancel()
        gate.release()
        server.wait_for_requests("unload_model")
        client.get_server_capabilities()
    assert [body["model_id"] for body in server.bodies("unload_model")] == ["m1"]
    assert LOG_TEXT not in caplog.text


def test_model_is_unloaded_by_the_id_of_the_result(server: ScriptedServer) -> None:
    """The id of a future's model may be that of the session; the client waits for the model before it unloads it."""
    gate = hold_results(server, "create_model")
    response = ScriptedResponse({"request_id": "late", "status": "pending", "model_id": "another"})
    with open_client(server.url, wire_version=OLD) as client:
        cancel_before_response(server, client, response)
        wait_for_polls(server)
        gate.release()
        server.wait_for_requests("unload_model")
    assert [body["model_id"] for body in server.bodies("unload_model")] == ["m1"]


def test_request_that_is_rejected_after_its_cancellation_leaves_nothing(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    with open_client(server.url, wire_version=OLD) as client:
        cancel_before_response(server, client, ScriptedResponse({"detail": "no such model"}, status=400))
        client.get_server_capabilities()
    assert not server.named("unload_model")
    assert LOG_TEXT not in caplog.text


def test_creation_without_any_id_is_logged(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    with open_client(server.url, wire_version=OLD) as client:
        cancel_before_response(server, client, ScriptedResponse({}))
        wait_until(lambda: LOG_TEXT in caplog.text, "the log line")
    assert not server.named("unload_model")


def test_model_that_the_server_creates_at_once_is_unloaded(server: ScriptedServer) -> None:
    """Some servers return the model in place of a future; its response comes after the call was cancelled."""
    with open_client(server.url, wire_version=OLD) as client:
        cancel_before_response(server, client, ScriptedResponse({"model_id": "m9"}))
        server.wait_for_requests("unload_model")
    assert [body["model_id"] for body in server.bodies("unload_model")] == ["m9"]


def test_model_that_load_weights_creates_is_unloaded(server: ScriptedServer) -> None:
    """Its result need not have the id, which the session and the number of the model give."""
    gate = hold_results(server, "load_weights")
    server.on_poll("LoadWeights", lambda _: ScriptedResponse({"path": PATH, "type": "load_weights"}, gate=gate))
    flags = {"create_model_via_load_weights": True}
    with open_client(server.url, wire_version="0.25.0", client_config=flags) as client:
        future = client.create_training_client_from_state(PATH)._creation
        wait_for_polls(server)
        assert future.cancel()
        gate.release()
        server.wait_for_requests("unload_model")
        (created,) = server.bodies("load_weights")
    assert [body["model_id"] for body in server.bodies("unload_model")] == [f"{created['session_id']}:train:0"]


def test_model_is_unloaded_if_loading_its_weights_is_cancelled(server: ScriptedServer) -> None:
    """The client unloads a model whose weights it does not load, because it is useless."""
    gate = hold_results(server, "load_weights")
    with open_client(server.url, wire_version=OLD) as client:
        future = client.create_training_client_from_state(PATH)._creation
        wait_for_polls(server)
        assert future.cancel()
        server.wait_for_requests("unload_model")
        gate.release()
    assert [body["model_id"] for body in server.bodies("unload_model")] == ["m1"]


@pytest.mark.parametrize("status", [404, 422, 500])
def test_rejected_cancellation_is_logged(server: ScriptedServer, status: int, caplog: pytest.LogCaptureFixture) -> None:
    """The client sends the cancellation once and logs the response; later operations succeed."""
    gate = hold_results(server, "save_weights")
    server.rules["cancel_future"] = lambda _: ScriptedResponse({"detail": "only samples"}, status=status)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["save_weights"](client)
        wait_for_polls(server)
        assert future.cancel()
        wait_until(lambda: LOG_TEXT in caplog.text, "the log line")
        gate.release()
        assert create_training(client).forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
    assert "only samples" in caplog.text
    assert len(server.named("cancel_future")) == 1


def test_cancellation_without_a_response_ends_after_a_time_limit(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancellation ends after its time limit, and the operation is logged."""
    monkeypatch.setattr("tinkerwire._polling.abandonment.ABANDON_S", 0.2)
    hold_results(server, "save_weights")
    server.rules["cancel_future"] = lambda _: ScriptedResponse(gate=Gate())
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["save_weights"](client)
        wait_for_polls(server)
        assert future.cancel()
        wait_until(lambda: LOG_TEXT in caplog.text, "the log line")


def test_close_ends_a_pending_cancellation(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """close() ends a pending cancellation and logs the operation."""
    hold_results(server, "save_weights")
    server.rules["cancel_future"] = lambda _: ScriptedResponse(gate=Gate())
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["save_weights"](client)
        wait_for_polls(server)
        assert future.cancel()
        server.wait_for_requests("cancel_future")
    assert caplog.text.count(LOG_TEXT) == 1
    assert "the client was closed" in caplog.text


def test_operation_cancelled_between_retries_needs_no_cancellation(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """If an operation is cancelled before a retry, the client neither cancels on the server nor logs."""
    server.rules["create_model"] = lambda _: ScriptedResponse({"detail": "busy"}, 429, {"retry-after": "30"})
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["create_model"](client)
        server.wait_for_requests("create_model")
        wait_until(lambda: "busy" in future._record.step, "the pause before the next attempt")
        assert future.cancel()
        client.get_server_capabilities()
    assert not list_cancelled_ids(server)
    assert LOG_TEXT not in caplog.text


def test_log_line_shows_no_token(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """The log line does not contain the access token of the request."""
    gate = hold_results(server, "load_weights")
    with open_client(server.url, wire_version="0.22.7") as client:
        future = create_training(client).load_state(PATH, "token-of-the-owner")
        wait_for_polls(server)
        assert future.cancel()
        wait_until(lambda: LOG_TEXT in caplog.text, "the log line")
        gate.release()
    assert "token-of-the-owner" not in caplog.text
