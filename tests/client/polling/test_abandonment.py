"""Operations that build something and are given up: the server is asked to end them, or a log line names them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, datum, open_client, wait_until
from support.scripted import PATIENCE_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer
from tinkerwire._training.losses.handles import CustomLosses
from tinkerwire._training.losses.tracing import TracedLoss
from tinkerwire_generated.models import CustomLossGraph, CustomLossInput

pytestmark = pytest.mark.timeout(60)
NEW, OLD = "0.38.0", "0.16.1"
FLAGS = {"custom_loss_server_side": True}
PATH = "tinker://m1/weights/a"
LINE = "was abandoned"
Start = Callable[[tw.ServiceClient], "tw.APIFuture[Any]"]


def training(client: tw.ServiceClient) -> tw.TrainingClient:
    """A training client whose model is there."""
    return client.create_lora_training_client("base", rank=8).result(PATIENCE_S)


def sampler_of_weights(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Start a save that makes a sampling client."""
    return training(client).save_weights_and_get_sampling_client()._creation


def custom_loss(client: tw.ServiceClient) -> tw.APIFuture[Any]:
    """Start to hand a loss over; its graph needs no torch here."""
    traced = TracedLoss("mine", (CustomLossInput(name="logprobs", rank=1),), CustomLossGraph(nodes=[]), None)
    losses = CustomLosses(client._session)
    return client._connection.start(lambda: losses.create(traced), "CreateCustomLoss")


START: dict[str, Start] = {
    "create_model": lambda client: client.create_lora_training_client("base", rank=8)._creation,
    "load_weights": lambda client: training(client).load_state(PATH),
    "save_weights": lambda client: training(client).save_state("a"),
    "save_weights_for_sampler": sampler_of_weights,
    "create_sampling_session": lambda client: client.create_sampling_client(base_model="base")._creation,
    "copy_weights": lambda client: client.create_rest_client().copy_weights(PATH, "project"),
    "create_custom_loss": custom_loss,
}
NEWER = ("copy_weights", "create_custom_loss")
"""Operations that old wires do not have."""


def hold_results(server: ScriptedServer, name: str) -> Gate:
    """Have a server take one operation, and hold its result back."""
    hold = Gate()
    others = server.healthy_response

    def poll(asked: RecordedRequest) -> ScriptedResponse:
        if asked.body["request_id"] != "late":
            return others(asked)
        values = {"create_sampling_session": {"sampling_session_id": "sampler1"}}
        return ScriptedResponse(values.get(name, {}) if name in (*values, *NEWER) else server.result(name), hold=hold)

    server.rules[name] = lambda _: ScriptedResponse({"request_id": "late", "status": "pending"})
    server.rules["retrieve_future"] = poll
    server.rules["cancel_future"] = lambda _: ScriptedResponse({})
    return hold


def hold_response(server: ScriptedServer, name: str) -> Gate:
    """Have a server hold back the response to one operation, which then is a future."""
    hold = Gate()
    server.rules[name] = lambda _: ScriptedResponse({"request_id": "late", "status": "pending"}, hold=hold)
    server.rules["cancel_future"] = lambda _: ScriptedResponse({})
    return hold


def wait_for_polls(server: ScriptedServer) -> None:
    """Wait until the result that is held back was asked for."""
    server.wait_for(lambda: any(body["request_id"] == "late" for body in server.bodies("retrieve_future")), "a poll")


def cancelled(server: ScriptedServer) -> list[str]:
    """The ids for which the server was asked to cancel something."""
    return [body["request_id"] for body in server.bodies("cancel_future")]


@pytest.mark.parametrize("name", START)
def test_a_cancelled_operation_is_cancelled_on_the_server(
    server: ScriptedServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, by its request id, and without a log line."""
    hold_results(server, name)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START[name](client)
        wait_for_polls(server)
        assert future.cancel()
        server.wait_for_requests("cancel_future")
        client.get_server_capabilities()
    assert cancelled(server) == ["late"]
    assert LINE not in caplog.text


@pytest.mark.parametrize("name", START)
def test_an_operation_that_is_cancelled_while_it_is_sent(server: ScriptedServer, name: str) -> None:
    """The response still arrives, and its request id is cancelled."""
    hold = hold_response(server, name)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START[name](client)
        server.wait_for_requests(name)
        assert future.cancel()
        hold.release()
        server.wait_for_requests("cancel_future")
    assert cancelled(server) == ["late"]
    assert len(server.named(name)) == 1


@pytest.mark.parametrize("name", START)
def test_an_operation_that_reaches_its_deadline(server: ScriptedServer, name: str) -> None:
    """The caller gets RequestTimeoutError at once, and the server is asked to cancel the operation."""
    hold_results(server, name)
    retry = attrs.evolve(FAST, progress_timeout=1.0)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS, retry=retry) as client:
        future = START[name](client)
        wait_for_polls(server)
        with pytest.raises(tw.RequestTimeoutError):
            future.result(PATIENCE_S)
        server.wait_for_requests("cancel_future")
    assert cancelled(server) == ["late"]


@pytest.mark.parametrize("name", ["create_model", "create_sampling_session", "copy_weights"])
def test_a_deadline_while_the_request_is_sent(server: ScriptedServer, name: str) -> None:
    """The response that comes after the deadline is used."""
    hold = hold_response(server, name)
    retry = attrs.evolve(FAST, progress_timeout=0.5)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS, retry=retry) as client:
        with pytest.raises(tw.RequestTimeoutError):
            START[name](client).result(PATIENCE_S)
        hold.release()
        server.wait_for_requests("cancel_future")
    assert cancelled(server) == ["late"]


def test_a_cancelled_gather_cancels_every_operation(server: ScriptedServer) -> None:
    """Each of them by its own id; operations that build nothing are left alone."""
    hold = Gate()
    server.rules["cancel_future"] = lambda _: ScriptedResponse({})
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        models = [training(client) for _ in range(2)]
        server.rules["retrieve_future"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
        futures = [each.save_state("a") for each in models]
        steps = [each.optim_step(ADAM) for each in models]
        both: list[tw.APIFuture[Any]] = [*futures, *steps]
        wait_until(lambda: all(future.request_id for future in both), "all are taken")
        ids = sorted(str(future.request_id) for future in futures)

        async def give_up() -> None:
            waiting = asyncio.ensure_future(tw.gather(both).result_async())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])

        asyncio.run(give_up())
        server.wait_for_requests("cancel_future", 2)
        hold.release()
        client.get_server_capabilities()
    assert sorted(cancelled(server)) == ids


def test_waiting_with_a_time_limit_gives_nothing_up(server: ScriptedServer) -> None:
    """The operation goes on, and its result arrives."""
    hold = hold_results(server, "save_weights")
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["save_weights"](client)
        wait_for_polls(server)
        with pytest.raises(TimeoutError):
            future.result(0.01)
        hold.release()
        assert future.result(PATIENCE_S).path == PATH
    assert not cancelled(server)


@pytest.mark.parametrize("name", [name for name in START if name not in ("create_model", *NEWER)])
def test_what_cannot_be_cancelled_is_logged(
    server: ScriptedServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line names the operation, its request and what it is about; the model goes on to be used."""
    hold = hold_results(server, name)
    with open_client(server.url, wire_version=OLD) as client:
        future = START[name](client)
        wait_for_polls(server)
        assert future.cancel()
        wait_until(lambda: LINE in caplog.text, "the line")
        hold.release()
        model = training(client)
        assert model.forward_backward([datum()], "cross_entropy").result(PATIENCE_S)
    assert caplog.text.count(LINE) == 1
    kind = "".join(part.title() for part in name.split("_"))
    assert f"{kind} late {LINE}" in caplog.text
    assert {"load_weights": PATH, "save_weights": "path a"}.get(name, "") in caplog.text
    assert not server.named("cancel_future")
    assert not server.named("unload_model")


@pytest.mark.parametrize("name", ["load_weights", "save_weights"])
def test_the_line_names_a_request_without_a_response(
    server: ScriptedServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its deadline came before the response: the line names the model and the path."""
    hold = hold_response(server, name)
    with open_client(server.url, wire_version=OLD, retry=attrs.evolve(FAST, progress_timeout=0.5)) as client:
        future = START[name](client)
        with pytest.raises(tw.RequestTimeoutError):
            future.result(PATIENCE_S)
        wait_until(lambda: LINE in caplog.text, "the line")
        hold.release()
    assert "model_id m1" in caplog.text
    assert caplog.text.count(LINE) == 1


def test_a_model_is_unloaded_where_the_server_cannot_cancel(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Before wire 0.26.2 the model is awaited for a few seconds, and unloaded."""
    hold = hold_results(server, "create_model")
    with open_client(server.url, wire_version=OLD) as client:
        future = START["create_model"](client)
        wait_for_polls(server)
        assert future.cancel()
        hold.release()
        server.wait_for_requests("unload_model")
        client.get_server_capabilities()
    assert [body["model_id"] for body in server.bodies("unload_model")] == ["m1"]
    assert LINE not in caplog.text


def test_a_model_whose_weights_are_being_loaded_is_unloaded(server: ScriptedServer) -> None:
    """It is of no use without its weights."""
    hold = hold_results(server, "load_weights")
    with open_client(server.url, wire_version=OLD) as client:
        future = client.create_training_client_from_state(PATH)._creation
        wait_for_polls(server)
        assert future.cancel()
        server.wait_for_requests("unload_model")
        hold.release()
    assert [body["model_id"] for body in server.bodies("unload_model")] == ["m1"]


@pytest.mark.parametrize("status", [404, 422, 500])
def test_a_refused_cancellation_is_logged(
    server: ScriptedServer, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It is sent once; the line has the response, and later operations succeed."""
    hold = hold_results(server, "save_weights")
    server.rules["cancel_future"] = lambda _: ScriptedResponse({"detail": "only samples"}, status=status)
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["save_weights"](client)
        wait_for_polls(server)
        assert future.cancel()
        wait_until(lambda: LINE in caplog.text, "the line")
        hold.release()
        assert training(client).forward_backward([datum()], "cross_entropy").result(PATIENCE_S)
    assert "only samples" in caplog.text
    assert len(server.named("cancel_future")) == 1


def test_a_server_that_never_answers_is_left_after_a_while(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt ends, and the line comes."""
    monkeypatch.setattr("tinkerwire._polling.abandonment.ABANDON_S", 0.2)
    hold_results(server, "save_weights")
    server.rules["cancel_future"] = lambda _: ScriptedResponse(hold=Gate())
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["save_weights"](client)
        wait_for_polls(server)
        assert future.cancel()
        wait_until(lambda: LINE in caplog.text, "the line")


def test_close_ends_an_attempt(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """The line names what is left then."""
    hold_results(server, "save_weights")
    server.rules["cancel_future"] = lambda _: ScriptedResponse(hold=Gate())
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["save_weights"](client)
        wait_for_polls(server)
        assert future.cancel()
        server.wait_for_requests("cancel_future")
    assert caplog.text.count(LINE) == 1
    assert "the client was closed" in caplog.text


def test_a_request_that_the_server_refused_leaves_nothing(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Cancelled while the request is tried again: there is nothing to cancel or to log."""
    server.rules["create_model"] = lambda _: ScriptedResponse({"detail": "busy"}, 429, {"retry-after": "30"})
    with open_client(server.url, wire_version=NEW, client_config=FLAGS) as client:
        future = START["create_model"](client)
        server.wait_for_requests("create_model")
        wait_until(lambda: "busy" in future._track.step, "the pause before the next attempt")
        assert future.cancel()
        client.get_server_capabilities()
    assert not cancelled(server)
    assert LINE not in caplog.text


def test_the_line_shows_no_token(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """An access token is part of the request, and not of the line."""
    hold = hold_results(server, "load_weights")
    with open_client(server.url, wire_version="0.22.7") as client:
        future = training(client).load_state(PATH, "token-of-the-owner")
        wait_for_polls(server)
        assert future.cancel()
        wait_until(lambda: LINE in caplog.text, "the line")
        hold.release()
    assert "token-of-the-owner" not in caplog.text
